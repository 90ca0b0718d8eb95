#include "agent/sweep/sweep.hpp"

#include <chrono>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job_folders.hpp"
#include "agent/started.hpp"
#include "agent/sweep/sweep_files.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::SweepAsk;
using wire::SweepRunner;

// Collects an answer.
class Replies final : public Stream {
 public:
  void send(const wire::Reply& reply) override { all.push_back(std::get<wire::SweepReply>(reply)); }
  bool is_closed() const override { return false; }

  std::vector<wire::SweepReply> all;
};

std::string catch_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

class SweepOnServer : public testing::Test, protected test::JobFolders {
 protected:
  SweepOnServer() {
    fs::remove(fs::path(host().root) / "proc");
    fs::create_directories(fs::path(host().root) / "proc/self");
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name != "self") {
        std::error_code ignored;
        fs::create_symlink(entry.path(), fs::path(host().root) / "proc" / name, ignored);
      }
    }
    set_supervisor("printf ok");
    const fs::path script = program() / "lib/job.sh";
    fs::create_directories(script.parent_path());
    put_file(script, "main\n");
    put_file(program() / "remote-agent", "");
    for (const fs::path& path :
         {fs::path(jobs().jobs), program().parent_path(), program(), script.parent_path()}) {
      fs::permissions(path, fs::perms::owner_all);
    }
    fs::permissions(script, fs::perms::owner_read | fs::perms::owner_write);
    request.place = place();
    request.program = {"d1", 5};
    request.launch = launch;
    request.points = wire::SweepPoints{.own = {{.command = "true"}}};
    request.run = {.own = "a",
                   .servers = {"a"},
                   .tokens = {"x"},
                   .address = "h",
                   .port = 0,
                   .points = {point},
                   .busy = {}};
  }
  // Replaces `remote-agent supervise-sweep` with a shell script. Its arguments are in the file `words`.
  void set_supervisor(const std::string& text) {
    const fs::path program = fs::path(host().root) / "proc/self/exe";
    put_file(program,
             "#!/bin/sh\nprintf '%s\\n' \"$@\" >'" + (path() / "words").string() + "'\n" + text + "\n");
    fs::permissions(program, fs::perms::owner_all);
  }
  fs::path program() { return fs::path(jobs().jobs) / ".bin/d1"; }
  std::string begin() {
    return catch_error([&] { begin_sweep(host(), request); });
  }
  std::vector<wire::SweepReply> ask(SweepAsk what, std::vector<std::string> waiting = {},
                                    std::vector<std::string> tails = {}) {
    Replies replies;
    answer_sweep(host(), {place(), launch, what, std::move(waiting), std::move(tails)}, replies);
    return replies.all;
  }
  SweepRunner find_state() { return ask(SweepAsk::look).at(0).runner; }
  void put_sweep(const std::string& name, const std::string& text) { put_file(folder_.file(name), text); }
  std::string read_path(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has(const std::string& name) { return exists(folder_.file(name)); }

  const std::string launch = new_id();
  const std::string point = new_id();
  wire::SweepToBegin request;
  const SweepFolder folder_{jobs(), launch};
};

TEST_F(SweepOnServer, BeginsOnce) {
  EXPECT_EQ(find_state(), SweepRunner::none);
  EXPECT_EQ(begin(), "none");
  EXPECT_EQ(read_path(path() / "words"),
            "supervise-sweep\n" + jobs().jobs.string() + "\n" + program().string() + "\n" + launch + "\n");
  EXPECT_EQ(folder_.read_points().value().own.size(), 1U);
  EXPECT_EQ(folder_.read_run().value().tokens, wire::LinkTokens{"x"});
  put_sweep("runner", this_process() + " " + read_boot_id(host()) + "\n");
  EXPECT_EQ(find_state(), SweepRunner::alive);
  EXPECT_EQ(begin(), "it runs here already");
  EXPECT_EQ(catch_error([&] { ask(SweepAsk::drop); }), "it still runs here");
  EXPECT_TRUE(has("points"));
}

TEST_F(SweepOnServer, ContinuesWithTheSamePoints) {
  request.points.reset();
  EXPECT_EQ(begin(), "the list of its points no longer exists here");
  request.points = wire::SweepPoints{.own = {{.command = "one"}}};
  EXPECT_EQ(begin(), "none");
  for (const char* name : {"stopped", "note", "runner"}) {
    put_sweep(name, "x\n");
  }
  request.points.reset();
  request.run.tokens = {"y"};
  EXPECT_EQ(begin(), "none");
  EXPECT_THAT(folder_.read_points().value().own, ElementsAre(wire::OwnSpec{.command = "one"}));
  EXPECT_EQ(folder_.read_run().value().tokens, wire::LinkTokens{"y"});
  for (const char* name : {"stopped", "note", "runner"}) {
    EXPECT_FALSE(has(name)) << name;
  }
}

TEST_F(SweepOnServer, SaysWhyItCannotBegin) {
  set_supervisor("printf 'cannot listen at port 7: in use'");
  EXPECT_EQ(begin(), "cannot listen at port 7: in use");
  set_supervisor("exit 1");
  EXPECT_EQ(begin(), "the process that runs its points ends at once");
  fs::remove(program() / "remote-agent");
  EXPECT_EQ(begin(), "the programs in " + program().string() + " are missing");
}

TEST_F(SweepOnServer, KnowsOfItsPoints) {
  folder_.make();
  const std::string given = new_id();
  const std::string unknown = new_id();
  put_sweep("journal", "give " + point + " a\ngive " + given + " b%20c\nbegin " + point + "\n");
  put_sweep("note", "cannot\x1b start\n");
  const auto replies = ask(SweepAsk::look, {point, given, unknown});
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].runner, SweepRunner::done);
  EXPECT_EQ(replies[0].note, "cannot\\x1b start");
  EXPECT_THAT(replies[0].begun, ElementsAre(point));
  ASSERT_EQ(replies[0].given.size(), 1U);
  EXPECT_EQ(replies[0].given[0].point + " " + replies[0].given[0].server, given + " b c");
}

TEST_F(SweepOnServer, ManyPointsNeedSeveralMessages) {
  folder_.make();
  std::vector<std::string> points;
  std::string journal;
  for (int i = 0; i < 2500; ++i) {
    points.push_back(new_id());
    journal += "begin " + points.back() + "\n";
  }
  put_sweep("journal", journal);
  std::size_t count = 0;
  const auto replies = ask(SweepAsk::look, points);
  for (const wire::SweepReply& reply : replies) {
    count += reply.begun.size();
  }
  EXPECT_EQ(replies.size(), 3U);
  EXPECT_EQ(count, points.size());
}

TEST_F(SweepOnServer, SendsTheLastLinesWithNumbers) {
  const std::string one = make({{"job.out", std::string(9000, 'x') + "\nloss 0.5\nno number\n1%\r2%\r\n"},
                                {"job.err", "warning 7\n" + std::string(500, '9') + "\n"}});
  const std::string two = make({{"job.out", "nothing\n"}});
  const std::string three = make({});
  test::JobFolders::put_file(path() / "secret", "secret 1\n");
  fs::create_symlink(path() / "secret", folder(three) / "job.out");
  ASSERT_EQ(::mkfifo((folder(three) / "job.err").c_str(), 0600), 0);
  const auto replies = ask(SweepAsk::look, {}, {one, two, three, new_id()});
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[1].tail_of, one);
  EXPECT_THAT(replies[1].tail, ElementsAre("warning 7", std::string(400, '9'), "loss 0.5", "2%"));
}

TEST_F(SweepOnServer, AStopKillsTheSupervisor) {
  EXPECT_EQ(ask(SweepAsk::stop).at(0).runner, SweepRunner::none);
  folder_.make();
  EXPECT_EQ(ask(SweepAsk::stop).at(0).runner, SweepRunner::stopped);
  EXPECT_TRUE(has("stopped"));
  const test::Started supervisor = test::run_sleep({});
  const ProcessId id = supervisor.id(Host{});
  const std::string pid = std::to_string(id.pid);
  fs::create_symlink("/proc/" + pid, fs::path(host().root) / "proc" / pid);
  put_sweep("runner",
            std::to_string(id.pid) + " " + std::to_string(id.start) + " " + read_boot_id(host()) + "\n");
  EXPECT_EQ(find_state(), SweepRunner::alive);
  EXPECT_EQ(ask(SweepAsk::stop).at(0).runner, SweepRunner::stopped);
  EXPECT_FALSE(is_alive(host(), id));
}

TEST_F(SweepOnServer, IsDropped) {
  EXPECT_EQ(begin(), "none");
  const std::string job = make({{"job.out", "x"}});
  EXPECT_EQ(ask(SweepAsk::drop).at(0).runner, SweepRunner::none);
  EXPECT_TRUE(fs::is_empty(fs::path(jobs().jobs) / ".sweeps"));
  EXPECT_TRUE(fs::exists(folder(job)));
}

// `remote-agent supervise-sweep` as a process.
class SweepProcess : public testing::Test, protected test::JobFolders {
 protected:
  ~SweepProcess() override {
    if (const auto left = sweep.find_supervisor(Host{})) {
      send_signal(Host{}, *left, SIGKILL);
    }
  }
  void put_run(std::vector<std::string> points, int port = 0) {
    sweep.make();
    sweep.write(wire::SweepPoints{.own = std::vector<wire::OwnSpec>(points.size(), {.command = "true"})});
    sweep.write(wire::SweepRun{
        .own = "a",
        .servers = port > 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"},
        .tokens = {"x"},
        .address = "127.0.0.1",
        .port = port,
        .points = std::move(points),
        .busy = {}});
  }
  // Runs it; returns its report.
  std::string supervise() {
    const fs::path out = path() / "report";
    std::string words[] = {jobs().jobs.string(), (jobs().jobs / ".bin/d1").string(), launch};
    std::fflush(stdout);
    test::Started process([&] {
      ::dup2(::open("/dev/null", O_RDONLY), 0);
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      char* pointers[] = {words[0].data(), words[1].data(), words[2].data()};
      ::_exit(run_supervise_sweep(3, pointers));
    });
    EXPECT_EQ(process.wait(), 0);
    std::string report;
    EXPECT_TRUE(test::eventually([&] {
      std::ifstream file(out);
      report = {std::istreambuf_iterator<char>(file), {}};
      return !report.empty();
    }));
    return report;
  }

  const std::string launch = new_id();
  const SweepFolder sweep{jobs(), launch};
};

TEST_F(SweepProcess, RunsUntilAllPointsHaveEnded) {
  const std::string running = make_running();
  put_run({new_id()});
  wire::SweepRun run = sweep.read_run().value();
  run.points = {""};
  run.busy = {running};
  sweep.write(run);
  EXPECT_EQ(supervise(), "ok");
  const auto supervisor = sweep.find_supervisor(Host{});
  ASSERT_TRUE(supervisor);
  const auto process = read_process(Host{}, supervisor->pid);
  EXPECT_EQ(process->name, "remote-sweep");
  EXPECT_EQ(process->session, supervisor->pid);
  EXPECT_EQ(process->group, supervisor->pid);
  EXPECT_EQ(supervise(), "it runs here already");
  put(running, "journal.jsonl", test::format_end("exit 0 1700000000000 supervisor\n"));
  EXPECT_TRUE(test::eventually([&] { return !exists(sweep.file("runner")); }));
  EXPECT_EQ(sweep.find_state(Host{}), SweepRunner::done);
}

TEST_F(SweepProcess, SaysWhyItCannotRun) {
  sweep.make();
  EXPECT_EQ(supervise(), "the list of its points no longer exists here");
  put_run({new_id()}, 1);
  put_file(sweep.file("runner"), "999999999 1 x\n");
  if (::geteuid() != 0) {
    EXPECT_EQ(supervise(), "cannot listen at port 1: Permission denied");
  }
  EXPECT_EQ(sweep.find_state(Host{}), SweepRunner::dead);
}

TEST_F(SweepProcess, TakesItsWordsStrictly) {
  char relative[] = "x";
  char folder[] = "/x";
  char id[] = "../x";
  char* words[] = {relative, folder, id};
  EXPECT_EQ(run_supervise_sweep(3, words), 2);
  words[0] = folder;
  EXPECT_EQ(run_supervise_sweep(3, words), 2);
  EXPECT_EQ(run_supervise_sweep(2, words), 2);
}

}  // namespace
}  // namespace remote::agent
