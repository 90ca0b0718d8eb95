#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "jobs/protocol.hpp"
#include "jobs/start.hpp"
#include "support/cut_proxy.hpp"
#include "support/instants.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"
#include "support/processes.hpp"
#include "support/test_lifeline.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

// The lifeline between the pretended servers "a" (the hub) and "b", on 127.0.0.1: no laptop takes part.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using Phase = StatusReply::Phase;
using test::until;

class LifelineTest : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  LifelineTest() : servers(GetParam()) {}

  template <typename Answer>
  Answer run(const std::string& server, servers::Action<Answer> action) {
    std::string errors;
    action.log = [&errors](ssh::Stream stream, std::string_view data) {
      errors += stream == ssh::Stream::err ? data : "";
    };
    const Answer answer = servers::run_action(*servers.connect(server), action, Cancel());
    EXPECT_EQ(errors, "");
    return answer;
  }
  // Starts a rank a command; returns their ids.
  std::vector<JobId> start(const std::string& server, const std::vector<std::string>& commands) {
    std::vector<StartRequest> requests;
    std::vector<Job> jobs;
    for (const std::string& command : commands) {
      Job job;
      job.id = JobId::random();
      job.rank = next_rank++;
      jobs.push_back(job);
      requests.push_back({job.id, command, "", {}});
    }
    const auto replies =
        run(server, start_action({"~/proj", ".jobs"}, requests, lifeline_request(lifeline, server, jobs)))
            .jobs;
    std::vector<JobId> ids;
    for (const StartReply& reply : replies) {
      EXPECT_EQ(reply.outcome, StartReply::Outcome::started) << reply.reason;
      ids.push_back(reply.id);
    }
    EXPECT_EQ(ids.size(), commands.size());
    return ids;
  }
  StatusReply status(const std::string& server, const JobId& id) {
    return run(server, status_action({"~/proj", ".jobs"}, {id}, {})).jobs.at(0);
  }
  StatusReply wait_end(const std::string& server, const JobId& id) {
    StatusReply reply;
    EXPECT_TRUE(test::eventually(
        [&] {
          reply = status(server, id);
          return reply.phase == Phase::ended;
        },
        20))
        << "the end of a job on " << server;
    return reply;
  }
  fs::path folder_of(const std::string& server, const JobId& id) {
    return servers.home(server) / "proj/.jobs" / id.text();
  }
  std::string told(const std::string& server, const JobId& id) {
    return read_file_if_there(folder_of(server, id) / "lifeline").value_or("");
  }
  // The process that is on record.
  pid_t lifeline_of(const std::string& server, const JobId& id) {
    const std::string record = read_file(folder_of(server, id) / "lifeline.pid");
    return parse_number<pid_t>(record.substr(0, record.find(' '))).value();
  }
  void until_told(const std::string& server, const JobId& id, const std::string& text) {
    EXPECT_TRUE(test::eventually([&] { return told(server, id).find(text) == 0; }, 90)) << told(server, id);
  }
  std::vector<int> processes_of(const std::string& server) {
    return test::processes_with("HOME=" + servers.home(server).string());
  }
  // As when its power goes: everything on it at once. Stopped first, so that none sees another's end.
  void crash(const std::string& server) {
    for (const int pid : processes_of(server)) {
      ::kill(pid, SIGSTOP);
    }
    EXPECT_TRUE(test::eventually([&] {
      const std::vector<int> pids = processes_of(server);
      for (const int pid : pids) {
        ::kill(pid, SIGKILL);
      }
      return pids.empty();
    }));
  }
  // When one server is lost, the jobs of the other are ended.
  void expect_loss(const std::string& lost, const std::string& left) {
    lifeline.timeout_s = 2;
    std::map<std::string, std::vector<JobId>> ids;
    for (const std::string server : {"a", "b"}) {
      ids[server] = start(server, {"sleep 300", "sleep 301"});
    }
    until_told(left, ids[left][0], "ok");
    crash(lost);
    for (const JobId& id : ids[left]) {
      expect_ended_by(left, id, "lost:" + lost);
    }
    expect_nothing_left();
  }
  void expect_nothing_left() {
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); }, 20));
  }
  void expect_ended_by(const std::string& server, const JobId& id, const std::string& by) {
    const StatusReply reply = wait_end(server, id);
    EXPECT_EQ(reply.stop_by, parse_by(by));
    EXPECT_EQ(reply.result(), ExitStatus::signalled(SIGTERM));
  }

  test::LocalServers servers;
  Lifeline lifeline = test::lifeline_of_two();
  int next_rank = 0;
};

TEST_P(LifelineTest, FailureOfOneEndsTheOthers) {
  lifeline.grace_s = 1;
  const auto on_a = start("a", {"sleep 300", "sleep 301"});
  const auto on_b = start("b", {"until [ -e ../fail ]; do sleep 0.2; done; exit 3", "sleep 302"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[1], "ok");
  EXPECT_EQ(status("a", on_a[0]).phase, Phase::running);
  EXPECT_EQ(status("a", on_a[0]).lifeline, JobReason());
  write_file_atomic(servers.home("b") / "fail", "");
  EXPECT_EQ(wait_end("b", on_b[0]).result(), ExitStatus::exited(3));
  expect_ended_by("a", on_a[0], "rank:2");
  expect_ended_by("a", on_a[1], "rank:2");
  expect_ended_by("b", on_b[1], "rank:2");
  EXPECT_EQ(wait_end("b", on_b[0]).stop_by, JobReason());
  expect_nothing_left();
}

// On slow storage its many files would be opened too late.
TEST_P(LifelineTest, WhatEndsTheRanksIsReadBeforeItIsNeeded) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"until [ -e ../fail ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  const auto waits = [](const std::string& place) {  // in the kernel; busybox polls
    return place.find("pipe") != std::string::npos || place.find("poll") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually([&] {
    return std::ranges::any_of(processes_of("a"), [&](int pid) {
      const std::string process = "/proc/" + std::to_string(pid);
      return read_file_if_there(process + "/cmdline").value_or("").find("ender.sh") != std::string::npos &&
             waits(read_file_if_there(process + "/wchan").value_or(""));
    });
  })) << "nothing waits for an order";
  fs::rename(servers.home("a") / "proj/.jobs/.bin", servers.home("a") / "gone");
  write_file_atomic(servers.home("b") / "fail", "");
  expect_ended_by("a", on_a[0], "rank:1");
  expect_nothing_left();
}

TEST_P(LifelineTest, FailureOnTheHubAndBeforeTheOthersAreThere) {
  const auto on_a = start("a", {"exit 4", "sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  expect_ended_by("a", on_a[1], "rank:0");
  expect_ended_by("b", on_b[0], "rank:0");
  expect_nothing_left();
}

TEST_P(LifelineTest, FailureBeforeTheHubIsThere) {
  const auto on_b = start("b", {"exit 5"});
  const auto on_a = start("a", {"sleep 300"});
  expect_ended_by("a", on_a[0], "rank:0");
  EXPECT_EQ(wait_end("b", on_b[0]).result(), ExitStatus::exited(5));
  expect_nothing_left();
}

TEST_P(LifelineTest, TheGraceLetsOthersEndByThemselves) {
  lifeline.grace_s = 5;
  const auto on_a = start("a", {"exit 4"});
  const auto on_b = start(
      "b", {"until [ \"$(cat ../../a/proj/.jobs/*/result 2>/dev/null)\" ]; do sleep 0.02; done; exit 6"});
  EXPECT_EQ(wait_end("b", on_b[0]).result(), ExitStatus::exited(6));
  EXPECT_EQ(wait_end("b", on_b[0]).stop_by, JobReason());
  EXPECT_EQ(wait_end("a", on_a[0]).result(), ExitStatus::exited(4));
  expect_nothing_left();
}

TEST_P(LifelineTest, SuccessAndAKillOfTheUserEndNothing) {
  lifeline.timeout_s = 6;  // within which a begins, also on a busy machine
  const auto on_b = start("b", {"true", "sleep 300"});
  const auto on_a = start("a", {"sleep 10", "true"});
  until_told("a", on_a[0], "ok");
  const auto killed =
      run("b", kill_action({"~/proj", ".jobs"}, {on_b[1]}, {SIGTERM, 5, "ada@laptop"})).jobs.at(0);
  EXPECT_EQ(killed.outcome, KillReply::Outcome::killed);
  // b's lifeline goes with its jobs, which is no loss
  EXPECT_TRUE(test::eventually([&] { return processes_of("b").empty(); }));
  EXPECT_EQ(wait_end("a", on_a[0]).result(), ExitStatus::exited(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, AJobWhoseFolderIsGoneIsNotTakenForEnded) {
  const auto on_b = start("b", {"sleep 300", "until [ -e ~/go ]; do sleep 0.2; done"});
  const auto on_a = start("a", {"until [ -e ~/go ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  fs::remove_all(servers.home("b") / "proj/.jobs" / on_b[0].text());
  // the end of one lets the lifeline look at all
  write_file_atomic(servers.home("b") / "go", "");
  EXPECT_EQ(wait_end("b", on_b[1]).result(), ExitStatus::exited(0));
  EXPECT_EQ(status("b", on_b[0]).phase, Phase::running);
  write_file_atomic(servers.home("a") / "go", "");
  EXPECT_EQ(wait_end("a", on_a[0]).result(), ExitStatus::exited(3));
  expect_nothing_left();
}

TEST_P(LifelineTest, LossOfAMember) {
  expect_loss("b", "a");
}

TEST_P(LifelineTest, LossOfTheHub) {
  expect_loss("a", "b");
}

TEST_P(LifelineTest, SilenceIsLossToo) {
  lifeline.timeout_s = 2;
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  const std::vector<int> frozen = processes_of("b");  // the connection stays, but nothing comes
  for (const int pid : frozen) {
    ::kill(pid, SIGSTOP);
  }
  expect_ended_by("a", on_a[0], "lost:b");
  for (const int pid : frozen) {
    ::kill(pid, SIGCONT);
  }
  // and when it is back, it hears of it
  EXPECT_EQ(wait_end("b", on_b[0]).stop_by.kind, JobReason::Kind::after_loss);
  expect_nothing_left();
}

TEST_P(LifelineTest, AStrangerIsNotBelieved) {
  lifeline.timeout_s = 2;
  const auto on_a = start("a", {"until [ -e ../end ]; do sleep 0.2; done"});
  lifeline.token = random_hex(64);
  const auto on_b = start("b", {"exit 3"});
  until_told("b", on_b[0], "cannot reach a");
  until_told("a", on_a[0], "waiting for b");
  EXPECT_EQ(status("a", on_a[0]).lifeline,
            (JobReason{.kind = JobReason::Kind::no_lifeline, .text = "waiting for b"}));
  write_file_atomic(servers.home("a") / "end", "");
  EXPECT_EQ(wait_end("a", on_a[0]).result(), ExitStatus::exited(0));
  expect_nothing_left();
}

// Idle connections, thousands of them, as fast as they can be made; the newest thousand stay open.
class Flood {
 public:
  explicit Flood(int port) : folder_("remote-flood-") {
    SubprocessSpec spec;
    spec.argv = {"python3", "-c",
                 "import collections, os, resource, socket, sys\n"
                 "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                 "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
                 "held, count = collections.deque(), 0\n"
                 "while True:\n"
                 "  s = socket.socket()\n"
                 "  s.settimeout(0.2)\n"
                 "  try: s.connect(('127.0.0.1', int(sys.argv[1])))\n"
                 "  except OSError: s.close(); continue\n"
                 "  held.append(s)\n"
                 "  if len(held) > min(1000, most - 50): held.popleft().close()\n"
                 "  count += 1\n"
                 "  if count % 100 == 0:\n"
                 "    open(sys.argv[2] + '.new', 'w').write(str(count))\n"
                 "    os.rename(sys.argv[2] + '.new', sys.argv[2])\n",
                 std::to_string(port), (folder_.path() / "count").string()};
    process_.emplace(spec);
  }
  int count() const {
    return parse_number<int>(read_file_if_there(folder_.path() / "count").value_or("0")).value_or(0);
  }

 private:
  TempFolder folder_;
  std::optional<Subprocess> process_;
};

TEST_P(LifelineTest, AMemberComesBackThroughThousandsOfStrangers) {
  lifeline.timeout_s = 4;
  const auto on_a = start("a", {"until [ -e ../end ]; do sleep 0.2; done"});
  test::CutProxy link(lifeline.port);
  const Flood flood(lifeline.port);
  lifeline.port = link.port();
  const auto on_b = start("b", {"until [ -e ../end ]; do sleep 0.2; done"});
  until_told("b", on_b[0], "ok");
  EXPECT_TRUE(test::eventually([&] { return flood.count() >= 2000; }));
  for (int i = 0; i < 3; ++i) {
    const int taken = link.connections();
    link.cut();
    // Each time within the timeout, or the ranks would be ended.
    EXPECT_TRUE(test::eventually([&] { return link.connections() > taken && told("b", on_b[0]) == "ok\n"; }));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    EXPECT_TRUE(test::eventually([&] { return std::chrono::steady_clock::now() > until; }));
  }
  for (const char* server : {"a", "b"}) {
    EXPECT_EQ(status(server, server[0] == 'a' ? on_a[0] : on_b[0]).phase, Phase::running) << server;
    write_file_atomic(servers.home(server) / "end", "");
  }
  EXPECT_EQ(wait_end("a", on_a[0]).result(), ExitStatus::exited(0));
  EXPECT_EQ(wait_end("b", on_b[0]).result(), ExitStatus::exited(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, OrphansOfAKilledAgentAreEnded) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"setsid sleep 300 & setsid sleep 301 & wait"});
  until_told("a", on_a[0], "ok");
  const std::optional<int> agent = status("b", on_b[0]).pid;
  ASSERT_TRUE(agent);
  ::kill(*agent, SIGKILL);
  EXPECT_EQ(wait_end("b", on_b[0]).result(), ExitStatus::signalled(SIGKILL));
  expect_ended_by("a", on_a[0], "rank:1");
  expect_nothing_left();
}

TEST_P(LifelineTest, TheSupervisorGoesWithItsJob) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"setsid sleep 300 & wait"});
  until_told("a", on_a[0], "ok");
  const auto words = split_words(read_file(servers.home("b") / "proj/.jobs" / on_b[0].text() / "supervisor"));
  ::kill(parse_number<int>(words.at(0)).value(), SIGKILL);
  ::kill(status("b", on_b[0]).pid.value(), SIGKILL);
  expect_ended_by("a", on_a[0], "rank:1");
  expect_nothing_left();
}

TEST_P(LifelineTest, TheSecretIsNowhere) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  for (const int pid : servers.processes()) {
    for (const std::string& text : {test::command_line(pid), test::environment_of(pid)}) {
      EXPECT_EQ(text.find(lifeline.token), std::string::npos) << pid;
    }
  }
  for (const char* server : {"a", "b"}) {
    for (const auto& entry : fs::recursive_directory_iterator(servers.home(server))) {
      // a file of the owner's, as job.sh is; it goes with the launch
      if (entry.path().filename() == "lifeline.request") {
        EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
      } else if (entry.is_regular_file()) {
        EXPECT_EQ(read_file(entry.path()).find(lifeline.token), std::string::npos) << entry.path();
      }
    }
  }
  run("b", kill_action({"~/proj", ".jobs"}, on_b, {SIGTERM, 5, "ada@laptop"}));
  run("a", kill_action({"~/proj", ".jobs"}, on_a, {SIGTERM, 5, "ada@laptop"}));
  expect_nothing_left();
  for (const fs::path& folder : {folder_of("a", on_a[0]), folder_of("b", on_b[0])}) {
    EXPECT_FALSE(fs::exists(folder / "lifeline.request")) << folder;
    EXPECT_FALSE(fs::exists(folder / "lifeline.pid")) << folder;
  }
}

TEST_P(LifelineTest, OneThatHasDiedIsStartedAgainByTheNextQuestion) {
  const auto on_a = start("a", {"sleep 300", "sleep 301"});
  const auto on_b = start("b", {"sleep 300", "until [ -e ../fail ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  EXPECT_EQ(status("a", on_a[0]).lifeline, JobReason());
  for (const auto& [server, id] : {std::pair("a", on_a[0]), std::pair("b", on_b[0])}) {
    const pid_t dead = lifeline_of(server, id);
    ::kill(dead, SIGKILL);
    until([&] { return !test::lives(dead); }, "the end of the lifeline");
    EXPECT_EQ(status(server, id).lifeline.kind, JobReason::Kind::lifeline_restarted);
    EXPECT_NE(lifeline_of(server, id), dead);
    EXPECT_EQ(status(server, id).lifeline, JobReason());
  }
  write_file_atomic(servers.home("b") / "fail", "");
  expect_ended_by("a", on_a[0], "rank:3");
  expect_ended_by("a", on_a[1], "rank:3");
  expect_ended_by("b", on_b[0], "rank:3");
  expect_nothing_left();
}

TEST_P(LifelineTest, ASecondOneOfAServerEndsAtOnce) {
  const auto ids = start("a", {"sleep 300", "sleep 301"});
  until_told("a", ids[0], "waiting");
  const pid_t first = lifeline_of("a", ids[0]);
  // as if two questions had found it dead at once
  const std::string record = read_file(folder_of("a", ids[0]) / "lifeline.pid");
  for (const JobId& id : ids) {
    write_file_atomic(folder_of("a", id) / "lifeline.pid", "1" + record.substr(record.find(' ')));
  }
  EXPECT_EQ(status("a", ids[0]).lifeline.kind, JobReason::Kind::lifeline_dead);
  EXPECT_TRUE(test::lives(first));
  EXPECT_EQ(lifeline_of("a", ids[0]), 1);
}

TEST_P(LifelineTest, OneThatCannotBeStartedAgainIsTold) {
  const auto ids = start("a", {"sleep 300"});
  until_told("a", ids[0], "waiting");
  const pid_t dead = lifeline_of("a", ids[0]);
  fs::remove(folder_of("a", ids[0]) / "lifeline.request");
  ::kill(dead, SIGKILL);
  until([&] { return !test::lives(dead); }, "the end of the lifeline");
  EXPECT_EQ(status("a", ids[0]).lifeline,
            (JobReason{.kind = JobReason::Kind::lifeline_dead, .text = "its request is not there any more"}));
}

TEST_P(LifelineTest, ANameMayHaveOddCharacters) {
  lifeline.servers = {"a", "b é%41 \"x\""};
  const auto on_a = start("a", {"exit 3", "sleep 300"});
  const auto on_b = start(lifeline.servers[1], {"sleep 300"});
  until_told(lifeline.servers[1], on_b[0], "ok");
  expect_ended_by(lifeline.servers[1], on_b[0], "rank:0");
  expect_nothing_left();
}

TEST_P(LifelineTest, NotesHowLongTheOutputIs) {
  lifeline.servers = {"a"};
  const JobId id = start("a", {"echo old; echo e >&2; until [ -e go ]; do sleep 0.2; done"}).front();
  std::string marks;
  EXPECT_TRUE(test::eventually(
      [&] {
        marks = read_file_if_there(folder_of("a", id) / "marks").value_or("");
        return marks.ends_with(" 4 2\n");
      },
      30))
      << marks;
  EXPECT_LE(std::chrono::abs(now_milliseconds() - exact_instant(std::stoll(marks))),
            std::chrono::seconds(40));
  std::ofstream(servers.home("a") / "proj/go") << "";
  wait_end("a", id);
  expect_nothing_left();
}

TEST_P(LifelineTest, OneServerAlone) {
  lifeline.servers = {"a"};
  const auto on_a = start("a", {"sleep 300", "exit 1"});
  expect_ended_by("a", on_a[0], "rank:1");
  expect_nothing_left();
}

// An address that swallows what is sent there must not keep a member from what else it has to do.
TEST(LifelineProcess, ConnectingIsNotWaitedFor) {
  SubprocessSpec spec;
  spec.directory = fs::path(test::source_folder) / "src/server/python";
  spec.argv = {"python3", "-B", "-c",
               "import lifeline, socket, time\n"
               "hole = socket.socket()\n"
               "hole.bind(('127.0.0.1', 0))\n"
               "hole.listen(0)\n"
               "full = [socket.socket() for _ in range(8)]\n"
               "for one in full:\n"
               "  one.setblocking(False)\n"
               "  one.connect_ex(hole.getsockname())\n"
               "member = lifeline.Lifeline({'token': ['x'], 'server': ['b'], 'servers': ['a', 'b'],\n"
               "  'address': ['127.0.0.1'], 'port': [str(hole.getsockname()[1])], 'grace': ['0'],\n"
               "  'timeout': ['60'], 'jobs': []}, '.', 'none')\n"
               "begun = time.monotonic()\n"
               "member.look_at_peers(begun)\n"
               "assert time.monotonic() - begun < 1\n"
               "assert member.connecting is not None and not member.links\n"
               "member.look_at_peers(begun + 3)\n"
               "assert member.connecting is None and member.refused\n"
               "hole.accept()\n"};
  const ExecResult result = run_subprocess(std::move(spec));
  EXPECT_TRUE(result.status.success()) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Shells, LifelineTest,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

}  // namespace
}  // namespace remote::jobs
