#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "jobs/clean.hpp"
#include "jobs/protocol.hpp"
#include "jobs/stacks.hpp"
#include "scripts/scripts.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"

// clean.sh and stacks.sh on the local shell, without ssh, under every sh that servers have; and what is made
// of their answers.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using Outcome = CleanReply::Outcome;
using Method = ProcessDump::Method;

class JobTools : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  JobTools() : servers(GetParam()), connection(servers.connect("a")) {}

  std::string exec(const std::string& script) {
    ssh::ExecRequest request;
    request.input = script;
    request.timeout = std::chrono::seconds(60);
    const ExecResult result = connection->exec(request);
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  fs::path jobs_folder() { return servers.home("a") / "my proj/.jobs"; }
  fs::path folder(const JobId& id) { return jobs_folder() / id.text(); }

  JobId start(const std::string& command, const std::string& activate = "",
              std::vector<std::pair<std::string, std::string>> env = {}) {
    const JobId id = JobId::random();
    const StartRequest request{id, command, activate, std::move(env)};
    EXPECT_EQ(parse_start(exec(start_script({"~/my proj", ".jobs"}, {request}))).at(0).outcome,
              StartReply::Outcome::started);
    return id;
  }
  void until_ended(const JobId& id) {
    test::until([&] { return fs::exists(folder(id) / "result"); }, "the job's end");
  }
  void until_out(const JobId& id, const std::string& text) {
    test::until(
        [&] {
          const auto out = read_file_if_there(folder(id) / "job.out");
          return out && out->find(text) != std::string::npos;
        },
        text.c_str());
  }
  CleanReply clean(const JobId& id) {
    return parse_clean(exec(clean_script({"~/my proj", ".jobs"}, {id}))).at(0);
  }
  std::vector<ProcessDump> stacks(const JobId& id) {
    return parse_stacks(exec(stacks_script({"~/my proj", ".jobs"}, {id})));
  }
  bool runs(const JobId& id) {
    return parse_status(exec(status_script({"~/my proj", ".jobs"}, {id}, {}))).jobs.at(0).phase ==
           StatusReply::Phase::running;
  }
  void kill(const JobId& id) { exec(kill_script({"~/my proj", ".jobs"}, {id}, SIGKILL, 0, "ada@laptop")); }

  test::LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
};

TEST_P(JobTools, CleanRemovesWhatEndedAndNothingElse) {
  const JobId ended = start("echo out");
  const JobId running = start("sleep 60");
  until_ended(ended);
  std::ofstream(jobs_folder() / "mine.txt") << "mine";
  const JobId absent = JobId::random();
  const auto replies = parse_clean(exec(clean_script({"~/my proj", ".jobs"}, {ended, running, absent})));
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[0].outcome, Outcome::removed) << replies[0].reason;
  EXPECT_EQ(replies[1].outcome, Outcome::running);
  EXPECT_NE(replies[1].reason.find("pid"), std::string::npos);
  EXPECT_EQ(replies[2].outcome, Outcome::none);
  EXPECT_FALSE(fs::exists(folder(ended)));
  EXPECT_TRUE(fs::exists(folder(running) / "job.sh"));
  EXPECT_TRUE(fs::exists(jobs_folder() / "mine.txt"));
  EXPECT_TRUE(runs(running));
  kill(running);
  EXPECT_EQ(clean(running).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanSeesWhatTheSupervisorDoesNot) {
  // The main process has ended with a result, a child of it lives on.
  const JobId left = start("sleep 60 & exit 0");
  until_ended(left);
  EXPECT_EQ(clean(left).outcome, Outcome::running);
  kill(left);
  EXPECT_EQ(clean(left).outcome, Outcome::removed);
  // The supervisor is dead, the job lives.
  const JobId orphan = start("sleep 60");
  std::ifstream file(folder(orphan) / "supervisor");
  int supervisor = 0;
  file >> supervisor;
  ASSERT_GT(supervisor, 1);
  ::kill(supervisor, SIGKILL);
  EXPECT_EQ(clean(orphan).outcome, Outcome::running);
  EXPECT_TRUE(runs(orphan));
  kill(orphan);
  EXPECT_EQ(clean(orphan).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanKeepsAFreshClaim) {
  fs::create_directories(jobs_folder());
  const JobId id = JobId::random();
  exec(status_script({"~/my proj", ".jobs"}, {id}, {id}));
  ASSERT_TRUE(fs::exists(folder(id) / "result"));
  EXPECT_EQ(clean(id).outcome, Outcome::running);
  std::ofstream(folder(id) / "result") << "never 0 1000\n";
  EXPECT_EQ(clean(id).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanDoesNotFollowLinks) {
  fs::create_directories(jobs_folder());
  const fs::path precious = servers.home("a") / "precious";
  fs::create_directories(precious);
  std::ofstream(precious / "result") << "exit 0 1000\n";
  const JobId id = JobId::random();
  fs::create_symlink(precious, folder(id));
  EXPECT_EQ(clean(id).outcome, Outcome::failed);
  EXPECT_TRUE(fs::exists(precious / "result"));
}

constexpr const char* program =
    "exec /usr/bin/python3 -c 'import threading, time\n"
    "def wait_here():\n  print(\"up\", flush=True)\n  time.sleep(60)\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nwait_here()'";

TEST_P(JobTools, StacksOfAPreparedProgram) {
  const JobId id = start(program, enable_stacks_text(".jobs"), {{"RANK", "7"}});
  until_out(id, "up");
  for (int round = 0; round < 2; ++round) {  // the second answer holds nothing of the first
    const auto dumps = stacks(id);
    ASSERT_EQ(dumps.size(), 1U);
    EXPECT_EQ(dumps[0].id, id);
    EXPECT_EQ(dumps[0].rank, 7);
    ASSERT_EQ(dumps[0].method, Method::faulthandler) << dumps[0].why;
    const auto threads = parse_threads(dumps[0]);
    ASSERT_EQ(threads.size(), 2U);
    ASSERT_FALSE(threads[0].frames.empty());
    EXPECT_EQ(threads[0].frames[0], "wait_here (<string>:4)");
  }
  EXPECT_TRUE(runs(id));
  kill(id);
  EXPECT_TRUE(stacks(id).empty());
}

TEST_P(JobTools, StacksNeverSignalTheUnprepared) {
  const JobId python = start(program);
  const JobId other = start("exec sleep 60");
  until_out(python, "up");
  const auto dumps = stacks(python);
  ASSERT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps[0].method, Method::kernel);
  EXPECT_NE(dumps[0].why.find("--enable-stacks"), std::string::npos);
  ASSERT_EQ(dumps[0].lines.size(), 2U);  // two threads
  EXPECT_NE(dumps[0].lines[0].find("state S"), std::string::npos);
  EXPECT_NE(stacks(other).at(0).why.find("not a Python process"), std::string::npos);
  EXPECT_TRUE(runs(python));
  EXPECT_TRUE(runs(other));
  kill(python);
  kill(other);
}

TEST_P(JobTools, EnableStacksChainsAndDisturbsNothing) {
  const JobId id = start(
      "mkdir -p other && echo 'print(\"other sitecustomize\", __name__)' >other/sitecustomize.py\n"
      "PYTHONPATH=$PYTHONPATH:other /usr/bin/python3 -c 'import sitecustomize; "
      "print(sitecustomize.__file__)'",
      enable_stacks_text(".jobs"), {{"PYTHONPATH", "first"}});
  until_ended(id);
  const std::string out = read_file_if_there(folder(id) / "job.out").value_or("");
  EXPECT_NE(out.find("other sitecustomize sitecustomize\n"), std::string::npos) << out;
  EXPECT_NE(out.find("other/sitecustomize.py\n"), std::string::npos) << out;
  EXPECT_EQ(read_file_if_there(folder(id) / "job.err").value_or("?"), "");
  const JobId plain =
      start("echo \"${PYTHONPATH##*:}\"; exit 3", enable_stacks_text(".jobs"), {{"PYTHONPATH", "first"}});
  until_ended(plain);
  EXPECT_EQ(read_file_if_there(folder(plain) / "job.out").value_or("?"), "first\n");
}

TEST_P(JobTools, LooksAtPathsBeforeTheyAreBrought) {
  const fs::path home = servers.home("a");
  std::ofstream(home / "a file");
  fs::create_symlink("a file", home / "link");
  fs::create_symlink("nothing", home / "dangling");
  EXPECT_EQ(exec(ssh::wrap_script(std::string(scripts::text("pull_look.sh")) +
                                  "pull_look ~/'a file' ~ ~/link ~/dangling ~/nothing")),
            "\n@remote1 pull there\n@remote1 pull there\n@remote1 pull link\n@remote1 pull missing\n"
            "@remote1 pull missing\n@remote1 end\n");
}

TEST_P(JobTools, TellsTheLastLinesOfStderr) {
  const auto last = [&](const std::string& text) {
    std::ofstream(servers.home("a") / "job.err") << text;
    return exec(ssh::wrap_script(std::string(scripts::text("last_stderr.sh")) + "last_stderr ~ 2"));
  };
  EXPECT_EQ(last("1\n@remote1 end\n3"),
            "\n@remote1 stderr |@remote1 end\n@remote1 stderr |3\n@remote1 end\n");
  EXPECT_EQ(last("\xff" + std::string(99999, 'x') + "\n\n"),
            "\n@remote1 stderr |" + std::string(2000, 'x') + "\n@remote1 stderr |\n@remote1 end\n");
  EXPECT_EQ(last(""), "\n@remote1 end\n");
}

INSTANTIATE_TEST_SUITE_P(Shells, JobTools,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::bash,
                                           test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

RankStack rank_at(int rank, const std::string& frame) {
  RankStack one;
  one.rank = rank;
  one.threads = {{"main", {frame, "main (train.py:9)"}}};
  return one;
}

TEST(Stacks, GroupsEqualOnesAndPutsTheOddOneFirst) {
  auto ranks = std::vector{rank_at(0, "wait (/home/a/train.py:3)"), rank_at(1, "wait (/root/train.py:3)"),
                           rank_at(2, "load (train.py:3)"), rank_at(3, "wait (train.py:3)")};
  ranks.push_back({});  // gave no stack
  const auto groups = group_stacks(ranks, false);
  ASSERT_EQ(groups.size(), 2U);
  ASSERT_EQ(groups[0].members.size(), 1U);
  EXPECT_EQ(groups[0].members[0].rank, 2);
  ASSERT_EQ(groups[1].members.size(), 3U);
  EXPECT_EQ(groups[1].members[0].rank, 0);
  EXPECT_EQ(groups[1].members[2].rank, 3);
  ranks[1].threads.push_back({"other", {"poll (x.py:1)"}});
  EXPECT_EQ(group_stacks(ranks, false).size(), 2U);
  EXPECT_EQ(group_stacks(ranks, true).size(), 3U);
}

TEST(Stacks, ReadsPySpy) {
  ProcessDump dump;
  dump.pid = 41;
  dump.method = Method::py_spy;
  dump.lines = {"Process 41: python train.py",
                "Python v3.11.2 (/usr/bin/python3.11)",
                "",
                "Thread 52 (idle): \"Thread-1\"",
                "    wait (threading.py:324)",
                "Thread 41 (active): \"MainThread\"",
                "    forward (model.py:12)",
                "    <module> (train.py:30)",
                ""};
  const auto threads = parse_threads(dump);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].frames, (std::vector<std::string>{"forward (model.py:12)", "<module> (train.py:30)"}));
  EXPECT_EQ(threads[1].frames, std::vector<std::string>{"wait (threading.py:324)"});
}

TEST(Stacks, RefusesForeignAnswers) {
  const std::string id(32, 'a');
  for (const std::string& line : std::vector<std::string>{
           "process " + id + " x - kernel", "process abc 4 - kernel", "process " + id + " 4 - gdb",
           std::string("line 4 |x"), "process " + id + " 4 - kernel\n@remote1 line 5 |x",
           "ended " + id + " x", std::string("clean")}) {
    EXPECT_THROW(parse_stacks("@remote1 " + line + "\n@remote1 end\n"), Error) << line;
    EXPECT_THROW(parse_clean("@remote1 " + line + "\n@remote1 end\n"), Error) << line;
  }
  for (const char* line : {" failed", " removed because", " gone", ""}) {
    EXPECT_THROW(parse_clean("@remote1 clean " + id + line + "\n@remote1 end\n"), Error) << line;
  }
  EXPECT_THROW(parse_clean("@remote1 clean " + id + " removed\n"), Error);  // cut short
}

}  // namespace
}  // namespace remote::jobs
