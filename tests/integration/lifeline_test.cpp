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
#include "base/strings.hpp"
#include "jobs/ask.hpp"
#include "jobs/keep_program.hpp"
#include "jobs/link_tokens.hpp"
#include "jobs/start.hpp"
#include "jobs/start_jobs.hpp"
#include "support/cut_proxy.hpp"
#include "support/instants.hpp"
#include "support/job_reports.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"
#include "support/processes.hpp"
#include "support/test_lifeline.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

// The lifeline between the simulated servers "a" (the coordinator) and "b", on 127.0.0.1, without a laptop.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using test::until;

class LifelineTest : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  const RemoteFolder folder{"~/proj", ".jobs"};

  LifelineTest() : servers(GetParam()) {}

  // Starts one rank per command; returns their ids.
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
    const auto connection = servers.connect(server);
    const auto replies =
        ask_start({*connection, Cancel()},
                  {.folder = folder, .requests = requests, .launch = spec_for(launch, server, jobs)});
    EXPECT_EQ(replies.size(), commands.size());
    std::vector<JobId> ids;
    for (const wire::StartedJob& reply : replies) {
      EXPECT_EQ(reply.outcome, StartOutcome::started) << reply.reason;
      ids.push_back(JobId::parse(reply.id).value());
    }
    return ids;
  }
  wire::JobReport status(const std::string& server, const JobId& id) {
    const auto connection = servers.connect(server);
    return ask_state({*connection, Cancel()}, {.folder = folder, .ids = {id}}).jobs.at(id);
  }
  std::map<JobId, wire::StopResult> kill(const std::string& server, const std::vector<JobId>& ids) {
    const auto connection = servers.connect(server);
    return ask_stop({*connection, Cancel()}, {.folder = folder, .ids = ids, .grace_s = 5}).results;
  }
  wire::JobReport wait_end(const std::string& server, const JobId& id) {
    wire::JobReport reply;
    EXPECT_TRUE(test::eventually([&] {
      reply = status(server, id);
      return reply.phase == Phase::ended;
    })) << "the end of a job on "
        << server;
    return reply;
  }
  void expect_trouble(const wire::JobReport& report, wire::LifelineState state, const std::string& reason) {
    ASSERT_TRUE(report.lifeline);
    EXPECT_EQ(report.lifeline->state, state);
    EXPECT_EQ(report.lifeline->reason, reason);
  }
  fs::path folder_of(const std::string& server, const JobId& id) {
    return servers.home(server) / "proj/.jobs" / id.text();
  }
  std::string told(const std::string& server, const JobId& id) {
    return read_file_if_there(folder_of(server, id) / "lifeline").value_or("");
  }
  pid_t lifeline_of(const std::string& server, const JobId& id) {
    return test::read_lifeline_pid(folder_of(server, id));
  }
  void kill_lifeline(const std::string& server, const JobId& id) {
    test::kill_lifeline(folder_of(server, id));
  }
  void until_told(const std::string& server, const JobId& id, const std::string& text) {
    EXPECT_TRUE(test::eventually([&] { return told(server, id).find(text) == 0; })) << told(server, id);
  }
  std::vector<int> processes_of(const std::string& server) {
    return test::processes_with("HOME=" + servers.home(server).string());
  }
  // Like a power failure: kills everything on the server at once. Stops the processes first, so that none
  // sees another end.
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
  // When one server is lost, the jobs on the other are stopped.
  void expect_loss(const std::string& lost, const std::string& left) {
    launch.timeout_seconds = 2;
    std::map<std::string, std::vector<JobId>> ids;
    for (const std::string server : {"a", "b"}) {
      ids[server] = start(server, {"sleep 300", "sleep 301"});
    }
    until_told(left, ids[left][0], "ok");
    crash(lost);
    for (const JobId& id : ids[left]) {
      expect_ended_by(left, id, after_loss(lost));
    }
    expect_nothing_left();
  }
  void expect_nothing_left() {
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); }));
  }
  void expect_ended_by(const std::string& server, const JobId& id, const wire::StoppedBy& by) {
    const wire::JobReport reply = wait_end(server, id);
    ASSERT_TRUE(reply.stop);
    EXPECT_EQ(reply.stop->by, by);
    EXPECT_EQ(result_of(reply), ExitStatus::signalled(SIGTERM));
  }

  test::LocalServers servers;
  wire::LaunchSpec launch = test::launch_of_two();
  int next_rank = 0;
};

TEST_P(LifelineTest, FailureOfOneEndsTheOthers) {
  launch.grace_seconds = 1;
  const auto on_a = start("a", {"sleep 300", "sleep 301"});
  const auto on_b = start("b", {"until [ -e ../fail ]; do sleep 0.2; done; exit 3", "sleep 302"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[1], "ok");
  EXPECT_EQ(status("a", on_a[0]).phase, Phase::running);
  EXPECT_FALSE(status("a", on_a[0]).lifeline);
  write_file_atomic(servers.home("b") / "fail", "");
  EXPECT_EQ(result_of(wait_end("b", on_b[0])), ExitStatus::exited(3));
  expect_ended_by("a", on_a[0], after_rank(2));
  expect_ended_by("a", on_a[1], after_rank(2));
  expect_ended_by("b", on_b[1], after_rank(2));
  EXPECT_FALSE(wait_end("b", on_b[0]).stop);
  expect_nothing_left();
}

TEST_P(LifelineTest, StopsRanksWithoutAProgramOnDisk) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"until [ -e ../fail ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  fs::rename(servers.home("a") / "proj/.jobs/.bin", servers.home("a") / "gone");
  write_file_atomic(servers.home("b") / "fail", "");
  expect_ended_by("a", on_a[0], after_rank(1));
  expect_nothing_left();
}

TEST_P(LifelineTest, FailureOnTheHubAndBeforeTheOthersAreThere) {
  const auto on_a = start("a", {"exit 4", "sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  expect_ended_by("a", on_a[1], after_rank(0));
  expect_ended_by("b", on_b[0], after_rank(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, FailureBeforeTheHubIsThere) {
  const auto on_b = start("b", {"exit 5"});
  const auto on_a = start("a", {"sleep 300"});
  expect_ended_by("a", on_a[0], after_rank(0));
  EXPECT_EQ(result_of(wait_end("b", on_b[0])), ExitStatus::exited(5));
  expect_nothing_left();
}

TEST_P(LifelineTest, TheGraceLetsOthersEndByThemselves) {
  launch.grace_seconds = 5;
  const auto on_a = start("a", {"exit 4"});
  const auto on_b = start("b", {"until grep -qs '\"kind\":\"ended\"' ../../a/proj/.jobs/*/journal.jsonl; do "
                                "sleep 0.02; done; exit 6"});
  EXPECT_EQ(result_of(wait_end("b", on_b[0])), ExitStatus::exited(6));
  EXPECT_FALSE(wait_end("b", on_b[0]).stop);
  EXPECT_EQ(result_of(wait_end("a", on_a[0])), ExitStatus::exited(4));
  expect_nothing_left();
}

TEST_P(LifelineTest, SuccessAndAKillOfTheUserEndNothing) {
  launch.timeout_seconds = 6;  // enough for a to start, even on a busy machine
  const auto on_b = start("b", {"true", "sleep 300"});
  const auto on_a = start("a", {"sleep 10", "true"});
  until_told("a", on_a[0], "ok");
  const auto killed = kill("b", {on_b[1]}).at(on_b[1]);
  EXPECT_EQ(killed.outcome, StopOutcome::killed);
  // b's lifeline ends with its jobs, which does not count as a loss
  EXPECT_TRUE(test::eventually([&] { return processes_of("b").empty(); }));
  EXPECT_EQ(result_of(wait_end("a", on_a[0])), ExitStatus::exited(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, AJobWhoseFolderIsGoneIsNotTakenForEnded) {
  const auto on_b = start("b", {"sleep 300", "until [ -e ~/go ]; do sleep 0.2; done"});
  const auto on_a = start("a", {"until [ -e ~/go ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  fs::remove_all(servers.home("b") / "proj/.jobs" / on_b[0].text());
  // the end of one job makes the lifeline check all of them
  write_file_atomic(servers.home("b") / "go", "");
  EXPECT_EQ(result_of(wait_end("b", on_b[1])), ExitStatus::exited(0));
  EXPECT_EQ(status("b", on_b[0]).phase, Phase::running);
  write_file_atomic(servers.home("a") / "go", "");
  EXPECT_EQ(result_of(wait_end("a", on_a[0])), ExitStatus::exited(3));
  expect_nothing_left();
}

TEST_P(LifelineTest, LossOfAMember) {
  expect_loss("b", "a");
}

TEST_P(LifelineTest, LossOfTheHub) {
  expect_loss("a", "b");
}

TEST_P(LifelineTest, SilenceIsLossToo) {
  launch.timeout_seconds = 2;
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  const std::vector<int> frozen = processes_of("b");  // the connection stays open, but silent
  for (const int pid : frozen) {
    ::kill(pid, SIGSTOP);
  }
  expect_ended_by("a", on_a[0], after_loss("b"));
  for (const int pid : frozen) {
    ::kill(pid, SIGCONT);
  }
  // and it is notified when it resumes
  EXPECT_EQ(wait_end("b", on_b[0]).stop.value().by.cause, wire::StopCause::lost);
  expect_nothing_left();
}

TEST_P(LifelineTest, AStrangerIsNotBelieved) {
  launch.timeout_seconds = 2;
  const auto on_a = start("a", {"until [ -e ../end ]; do sleep 0.2; done"});
  launch.tokens = make_link_tokens(2);
  const auto on_b = start("b", {"exit 3"});
  until_told("b", on_b[0], "cannot reach a");
  until_told("a", on_a[0], "waiting for b");
  expect_trouble(status("a", on_a[0]), wire::LifelineState::missing, "waiting for b");
  write_file_atomic(servers.home("a") / "end", "");
  EXPECT_EQ(result_of(wait_end("a", on_a[0])), ExitStatus::exited(0));
  expect_nothing_left();
}

// Thousands of idle connections, opened as fast as possible; the newest thousand stay open.
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
  launch.timeout_seconds = 4;
  const auto on_a = start("a", {"until [ -e ../end ]; do sleep 0.2; done"});
  test::CutProxy link(launch.port);
  const Flood flood(launch.port);
  launch.port = link.port();
  const auto on_b = start("b", {"until [ -e ../end ]; do sleep 0.2; done"});
  until_told("b", on_b[0], "ok");
  EXPECT_TRUE(test::eventually([&] { return flood.count() >= 2000; }));
  for (int i = 0; i < 3; ++i) {
    const int taken = link.connections();
    link.cut();
    // Each time within the timeout; otherwise the ranks would be stopped.
    EXPECT_TRUE(test::eventually([&] { return link.connections() > taken && told("b", on_b[0]) == "ok\n"; }));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    EXPECT_TRUE(test::eventually([&] { return std::chrono::steady_clock::now() > until; }));
  }
  for (const char* server : {"a", "b"}) {
    EXPECT_EQ(status(server, server[0] == 'a' ? on_a[0] : on_b[0]).phase, Phase::running) << server;
    write_file_atomic(servers.home(server) / "end", "");
  }
  EXPECT_EQ(result_of(wait_end("a", on_a[0])), ExitStatus::exited(0));
  EXPECT_EQ(result_of(wait_end("b", on_b[0])), ExitStatus::exited(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, OrphansOfAKilledAgentAreEnded) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"setsid sleep 300 & setsid sleep 301 & wait"});
  until_told("a", on_a[0], "ok");
  const std::optional<int> agent = status("b", on_b[0]).pid;
  ASSERT_TRUE(agent);
  ::kill(*agent, SIGKILL);
  EXPECT_EQ(result_of(wait_end("b", on_b[0])), ExitStatus::signalled(SIGKILL));
  expect_ended_by("a", on_a[0], after_rank(1));
  expect_nothing_left();
}

TEST_P(LifelineTest, TheSupervisorGoesWithItsJob) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"setsid sleep 300 & wait"});
  until_told("a", on_a[0], "ok");
  const auto words = split_words(read_file(servers.home("b") / "proj/.jobs" / on_b[0].text() / "supervisor"));
  ::kill(parse_number<int>(words.at(0)).value(), SIGKILL);
  ::kill(status("b", on_b[0]).pid.value(), SIGKILL);
  expect_ended_by("a", on_a[0], after_rank(1));
  expect_nothing_left();
}

TEST_P(LifelineTest, TheSecretIsNowhere) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  for (const int pid : servers.processes()) {
    for (const std::string& text : {test::command_line(pid), test::environment_of(pid)}) {
      EXPECT_EQ(text.find(launch.tokens.front()), std::string::npos) << pid;
    }
  }
  for (const char* server : {"a", "b"}) {
    for (const auto& entry : fs::recursive_directory_iterator(servers.home(server))) {
      // a file owned by the user, like spec.json; it is removed with the launch
      if (entry.path().filename() == "lifeline.json") {
        EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
      } else if (entry.is_regular_file()) {
        EXPECT_EQ(read_file(entry.path()).find(launch.tokens.front()), std::string::npos) << entry.path();
      }
    }
  }
  kill("b", on_b);
  kill("a", on_a);
  expect_nothing_left();
  for (const fs::path& job : {folder_of("a", on_a[0]), folder_of("b", on_b[0])}) {
    EXPECT_FALSE(fs::exists(job / "lifeline.json")) << job;
    EXPECT_FALSE(fs::exists(job / "lifeline.pid")) << job;
  }
}

TEST_P(LifelineTest, OneThatHasDiedIsStartedAgainByTheNextQuestion) {
  const auto on_a = start("a", {"sleep 300", "sleep 301"});
  const auto on_b = start("b", {"sleep 300", "until [ -e ../fail ]; do sleep 0.2; done; exit 3"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  EXPECT_FALSE(status("a", on_a[0]).lifeline);
  for (const auto& [server, id] : {std::pair("a", on_a[0]), std::pair("b", on_b[0])}) {
    until_told(server, id, "ok");  // b is briefly cut off from a
    const pid_t dead = lifeline_of(server, id);
    kill_lifeline(server, id);
    expect_trouble(status(server, id), wire::LifelineState::restarted, "");
    EXPECT_NE(lifeline_of(server, id), dead);
    until_told(server, id, "ok");
    EXPECT_FALSE(status(server, id).lifeline);
  }
  write_file_atomic(servers.home("b") / "fail", "");
  expect_ended_by("a", on_a[0], after_rank(3));
  expect_ended_by("a", on_a[1], after_rank(3));
  expect_ended_by("b", on_b[0], after_rank(3));
  expect_nothing_left();
}

// The request may come from another build, and two builds could not communicate over a link.
TEST_P(LifelineTest, OneThatIsStartedAgainIsOfTheBuildOfItsLaunch) {
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("b", on_b[0], "ok");
  const fs::path program = servers.home("b") / "proj/.jobs/.bin" / server_program().digest;
  const fs::path agent = program / "remote-agent";
  const fs::path mark = servers.home("b") / "other-build";
  fs::rename(agent, program / "real");
  write_file_atomic(agent,
                    "#!/bin/sh\n: >'" + mark.string() + "'\nexec '" + program.string() + "/real' \"$@\"\n");
  fs::permissions(agent, fs::perms::owner_all);
  kill_lifeline("b", on_b[0]);
  expect_trouble(status("b", on_b[0]), wire::LifelineState::restarted, "");
  EXPECT_TRUE(fs::exists(mark));
  until_told("b", on_b[0], "ok");
  until_told("a", on_a[0], "ok");
  // Without it, no other build silently takes its place.
  fs::remove(agent);
  kill_lifeline("b", on_b[0]);
  expect_trouble(status("b", on_b[0]), wire::LifelineState::dead,
                 "the agent of its launch in " + program.string() +
                     " is missing, cannot be executed or is writable by other users");
  fs::rename(program / "real", agent);
  expect_trouble(status("b", on_b[0]), wire::LifelineState::restarted, "");
  kill("b", on_b);
  kill("a", on_a);
  expect_nothing_left();
}

TEST_P(LifelineTest, OneThatDiesAloneIsReplacedAtOnce) {
  launch.timeout_seconds = 3;
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b =
      start("b", {"until [ -e ../fail ]; do sleep 0.2; done; exit 3", "setsid sleep 301 & wait"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  for (const auto& [server, id] : {std::pair("b", on_b[0]), std::pair("a", on_a[0])}) {
    const pid_t dead = lifeline_of(server, id);
    ::kill(dead, SIGKILL);
    const std::string& name = server;
    const JobId& job = id;
    until([&] { return lifeline_of(name, job) != dead; }, "another lifeline");
    until_told("a", on_a[0], "ok");
    until_told("b", on_b[0], "ok");
  }
  EXPECT_EQ(status("a", on_a[0]).phase, Phase::running);
  EXPECT_FALSE(status("a", on_a[0]).lifeline);
  write_file_atomic(servers.home("b") / "fail", "");
  expect_ended_by("a", on_a[0], after_rank(1));
  expect_ended_by("b", on_b[1], after_rank(1));
  expect_nothing_left();
}

// No status request arrives that would restart it.
TEST_P(LifelineTest, OneThatDiesWithItsWatchdogIsALostServer) {
  launch.timeout_seconds = 3;
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  kill_lifeline("b", on_b[0]);
  expect_ended_by("a", on_a[0], after_loss("b"));
  kill("b", on_b);
  expect_nothing_left();
}

TEST_P(LifelineTest, OneThatIsStartedAgainKnowsWhomItHadHeard) {
  launch.timeout_seconds = 4;
  const auto on_a = start("a", {"sleep 300"});
  const auto on_b = start("b", {"sleep 300"});
  until_told("a", on_a[0], "ok");
  until_told("b", on_b[0], "ok");
  kill_lifeline("b", on_b[0]);
  crash("a");
  expect_trouble(status("b", on_b[0]), wire::LifelineState::restarted, "");
  expect_ended_by("b", on_b[0], after_loss("a"));
  expect_nothing_left();
}

TEST_P(LifelineTest, ASecondOneOfAServerEndsAtOnce) {
  const auto ids = start("a", {"sleep 300", "sleep 301"});
  until_told("a", ids[0], "waiting");
  const pid_t first = lifeline_of("a", ids[0]);
  // as if two requests had found it dead at the same time
  const std::string record = read_file(folder_of("a", ids[0]) / "lifeline.pid");
  for (const JobId& id : ids) {
    write_file_atomic(folder_of("a", id) / "lifeline.pid", "1" + record.substr(record.find(' ')));
  }
  EXPECT_EQ(status("a", ids[0]).lifeline.value().state, wire::LifelineState::dead);
  EXPECT_TRUE(test::lives(first));
  EXPECT_EQ(lifeline_of("a", ids[0]), 1);
}

TEST_P(LifelineTest, OneThatCannotBeStartedAgainIsTold) {
  const auto ids = start("a", {"sleep 300"});
  until_told("a", ids[0], "waiting");
  fs::remove(folder_of("a", ids[0]) / "lifeline.json");
  kill_lifeline("a", ids[0]);
  expect_trouble(status("a", ids[0]), wire::LifelineState::dead, "its file lifeline.json is missing");
}

TEST_P(LifelineTest, ANameMayHaveOddCharacters) {
  launch.servers[1].name = "b é%41 \"x\"";
  const auto on_a = start("a", {"exit 3", "sleep 300"});
  const auto on_b = start(launch.servers[1].name, {"sleep 300"});
  until_told(launch.servers[1].name, on_b[0], "ok");
  expect_ended_by(launch.servers[1].name, on_b[0], after_rank(0));
  expect_nothing_left();
}

TEST_P(LifelineTest, NotesHowLongTheOutputIs) {
  launch.servers.pop_back();
  const JobId id = start("a", {"echo old; echo e >&2; until [ -e go ]; do sleep 0.2; done"}).front();
  std::string marks;
  EXPECT_TRUE(test::eventually([&] {
    marks = read_file_if_there(folder_of("a", id) / "marks").value_or("");
    return marks.ends_with(" 4 2\n");
  })) << marks;
  EXPECT_LE(std::chrono::abs(now_milliseconds() - exact_instant(std::stoll(marks))), test::patience);
  std::ofstream(servers.home("a") / "proj/go") << "";
  wait_end("a", id);
  expect_nothing_left();
}

TEST_P(LifelineTest, OneServerAlone) {
  launch.servers.pop_back();
  const auto on_a = start("a", {"sleep 300", "exit 1"});
  expect_ended_by("a", on_a[0], after_rank(1));
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Shells, LifelineTest,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

}  // namespace
}  // namespace remote::jobs
