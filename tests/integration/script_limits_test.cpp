#include <algorithm>
#include <csignal>
#include <iterator>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/subprocess.hpp"
#include "jobs/from_wire.hpp"
#include "servers/agent.hpp"
#include "servers/facts.hpp"
#include "servers/leases.hpp"
#include "support/job_journal.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"
#include "wire/json.hpp"

// What can be reported and done if the user has reached the process limit, and if some of the user's
// processes cannot be inspected.

namespace remote::jobs {
namespace {

uid_t next_uid() {
  static uid_t count = 0;
  return 700000 + (static_cast<uid_t>(::getpid()) % 100000) * 64 + count++;
}

class JobLimits : public test::ScriptTest {
 protected:
  const uid_t uid = next_uid();
  void SetUp() override {
    if (::geteuid() != 0 || !find_program("setpriv")) {
      GTEST_SKIP() << "needs root, to be a user with limits";
    }
  }
  // Replaces the servers' sh with a program; `real` in its text is the original shell.
  void replace_shell(const std::string& text) {
    const fs::path real = servers.home("a").parent_path() / "shell";
    fs::create_directories(real);
    fs::create_symlink(fs::read_symlink(servers.bin() / "sh"), real / "sh");
    servers.add_program("sh", "real='" + (real / "sh").string() + "'\n" + text);
  }
  // From now on commands run as a user with this process limit. No other test uses the same user id: zombies
  // count until init reaps them.
  void limit_processes(int most) {
    const std::string user = std::to_string(uid);
    for (fs::path folder = servers.home("a"); folder.filename() != "tmp" && folder.has_relative_path();
         folder = folder.parent_path()) {
      fs::permissions(folder, fs::perms::others_exec | fs::perms::others_read, fs::perm_options::add);
    }
    EXPECT_EQ(::chown(servers.home("a").c_str(), uid, 0), 0);
    const std::string number = std::to_string(most);
    replace_shell("[ -O /proc/1 ] && exec /usr/bin/setpriv --reuid=" + user + " --regid=" + user +
                  " --clear-groups \"$0\" \"$@\"\n"
                  "ulimit -p " +
                  number + " 2>/dev/null || ulimit -u " + number + "\nexec \"$real\" \"$@\"\n");
  }
  void TearDown() override {
    for (const char* place : {"/var/tmp", "/tmp", "/dev/shm"}) {
      fs::remove_all(second_place(place));
    }
  }
  fs::path second_place(const fs::path& place) const { return place / ("remote-" + std::to_string(uid)); }
  // Like a read-only disk: nothing can be created, renamed or removed there.
  void make_read_only(const JobId& id, bool read_only = true) {
    fs::permissions(folder(id), fs::perms::owner_write,
                    read_only ? fs::perm_options::remove : fs::perm_options::add);
  }
  // A job that starts as many processes as it can, and replaces those that end.
  JobId start_runaway() {
    const JobId id = start(
        "exec /usr/bin/python3 -c '\n"
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "while True:\n"
        "  try:\n"
        "    if os.fork() == 0:\n"
        "      time.sleep(1000)\n"
        "  except OSError:\n"
        "    print(\"full\", flush=True)\n"
        "    time.sleep(0.05)\n"
        "'");
    until([&] { return file(id, "job.out").find("full") != std::string::npos; }, "the runaway's limit");
    return id;
  }
};

TEST_P(JobLimits, ARunawayJobIsListedAndEnded) {
  limit_processes(24);
  const JobId id = start_runaway();
  const wire::JobReport reply = status(id);
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_TRUE(reply.pid);
  const wire::StopResult killed = kill(id, SIGTERM, 1);
  EXPECT_EQ(killed.outcome, StopOutcome::killed);
  EXPECT_GT(killed.signalled, 10);
  expect_nothing_left();
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(status(id).stop.value().by, by_ada);
}

TEST_P(JobLimits, WhatAnEndedOneHasLeftIsFoundAlsoThen) {
  limit_processes(24);
  const JobId id = start(
      "exec /usr/bin/python3 -c '\n"
      "import os, time\n"
      "for _ in range(17):\n"
      "  if os.fork() == 0:\n"
      "    time.sleep(1000)\n"
      "'");
  until([&] { return test::has_ended(folder(id)); }, "the end of the job");
  const wire::JobReport reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_FALSE(reply.unseen) << "the agent starts nothing to look";
  EXPECT_EQ(reply.leftovers, 17);
  for (const pid_t pid : test::processes_with("REMOTE_JOB_ID=" + id.text())) {
    ::kill(pid, SIGKILL);
  }
  expect_nothing_left();
  EXPECT_FALSE(status(id).leftovers);
}

TEST_P(JobLimits, TheReasonIsNamedWhereNothingCanBeStarted) {
  limit_processes(24);
  const JobId id = start_runaway();
  const std::string reason = "it cannot start a process there: the login's limit of 24 processes (ulimit -u)";
  const JobId late = JobId::random();
  try {
    start_all({{late, "true", "", {}}});
    ADD_FAILURE() << "it started a job";
  } catch (const servers::Refused& error) {
    EXPECT_THAT(error.reason(), ::testing::HasSubstr(reason));
  }
  EXPECT_FALSE(fs::exists(folder(late)));
  servers::FactsRequest facts;
  facts.wanted.python = true;
  try {
    servers::ask_facts(*connection, facts, Cancel());
    ADD_FAILURE() << "it found a Python";
  } catch (const Error& error) {
    EXPECT_NE(error.reason().find("limit"), std::string::npos) << error.reason();
  }
  EXPECT_EQ(kill(id, SIGKILL, 0).outcome, StopOutcome::killed);
}

// A daemon that other processes may not inspect, like ssh-agent.
TEST_P(JobLimits, ADaemonThatLetsNobodyLookIsNamedAndLeftAlone) {
  // so that root has no more access than a user
  replace_shell(
      "gone=-sys_ptrace,-sys_admin,-perfmon\nexec /usr/bin/setpriv --bounding-set=$gone --inh-caps=$gone "
      "\"$real\" \"$@\"\n");
  const auto daemon_pid = [&] {
    until(
        [&] { return parse_number<pid_t>(read_file_if_there(place() / "daemon").value_or("")).has_value(); },
        "the daemon");
    return parse_number<pid_t>(read_file(place() / "daemon")).value();
  };
  const JobId id = start(test::undumpable_daemon("daemon") + "; exec sleep 1000");
  const pid_t pid = daemon_pid();
  // The daemon is a child of the job's guard while the guard is alive.
  ::kill(supervisor_of(id), SIGKILL);
  const auto suspects_of = [](const wire::StopResult& result) {
    std::vector<std::string> suspects;
    std::ranges::transform(result.suspects, std::back_inserter(suspects), describe_suspect);
    return suspects;
  };
  const wire::StopResult reply = kill(id);
  EXPECT_EQ(reply.outcome, StopOutcome::killed);
  // Other tests that run in parallel may also have such daemons.
  const auto names_it =
      ::testing::Contains(::testing::StartsWith("pid " + std::to_string(pid) + " (python3, user "));
  EXPECT_THAT(suspects_of(reply), names_it);
  EXPECT_TRUE(test::lives(pid));
  // a process that started before a job does not belong to it
  const JobId other = start("exec sleep 1000");
  EXPECT_THAT(suspects_of(kill(other)), ::testing::Not(names_it));
  ::kill(pid, SIGKILL);
}

TEST_P(JobLimits, AResultThatItsFolderDoesNotTakeIsInTheSecondPlace) {
  limit_processes(1000);
  const JobId id = start("until [ -e ~/go ]; do sleep 0.2; done; exit 5");
  const JobId killed = start("echo up; exec sleep 1000");
  const JobId alone = start("echo up; exec sleep 1000");
  until_out(killed, "up");
  until_out(alone, "up");
  for (const JobId& one : {id, killed, alone}) {
    until([&] { return fs::exists(folder(one) / "journal.jsonl"); }, "its journal");
    fs::remove(folder(one) / "journal.jsonl");
    make_read_only(one);
  }
  EXPECT_EQ(status(id).phase, Phase::running);
  write_file_atomic(servers.home("a") / "go", "");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(5));
  const fs::path second = second_place("/var/tmp");
  EXPECT_EQ(fs::status(second).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(second / (id.text() + ".journal.jsonl")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(kill(killed).outcome, StopOutcome::killed);
  EXPECT_EQ(status(killed).stop.value().by, by_ada);
  EXPECT_EQ(result_of(status(killed)), ExitStatus::signalled(SIGTERM));
  // here kill writes the result
  ::kill(supervisor_of(alone), SIGKILL);
  EXPECT_EQ(kill(alone).outcome, StopOutcome::killed);
  EXPECT_EQ(status(alone).phase, Phase::ended);
  expect_nothing_left();
  // once writing works again, everything is cleaned up
  for (const JobId& one : {id, killed, alone}) {
    make_read_only(one, false);
    EXPECT_EQ(status(one).phase, Phase::ended);
    EXPECT_TRUE(test::has_ended(folder(one)));
  }
  EXPECT_EQ(status(killed).stop.value().by, by_ada);
  EXPECT_FALSE(fs::exists(second));
}

TEST_P(JobLimits, NobodyElseCanPutAResultIntoTheSecondPlace) {
  limit_processes(1000);
  const JobId id = start("until [ -e ~/go ]; do sleep 0.2; done; exit 5");
  const fs::path first = second_place("/var/tmp");
  // made by another user, and a link to another user's folder
  fs::create_directory(first);
  fs::permissions(first, fs::perms::all);
  std::ofstream(first / (id.text() + ".journal.jsonl")) << test::format_end(0);
  fs::create_symlink(first, second_place("/tmp"));
  EXPECT_EQ(status(id).phase, Phase::running);
  until([&] { return fs::exists(folder(id) / "journal.jsonl"); }, "its journal");
  fs::remove(folder(id) / "journal.jsonl");
  make_read_only(id);
  write_file_atomic(servers.home("a") / "go", "");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(5));
  EXPECT_TRUE(fs::exists(second_place("/dev/shm") / (id.text() + ".journal.jsonl")));
}

INSTANTIATE_TEST_SUITE_P(Shells, JobLimits, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
