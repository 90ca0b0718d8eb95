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
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "jobs/protocol.hpp"
#include "support/local_connection.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

// The scripts of src/scripts on the local shell, without ssh, under every sh that servers have.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using Phase = StatusReply::Phase;
using std::chrono::milliseconds;

using test::until;

class JobScripts : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  JobScripts() : servers(GetParam()), connection(servers.connect("a")) {}

  std::string exec(const std::string& script) {
    ssh::ExecRequest request;
    request.input = script;
    request.timeout = std::chrono::seconds(60);
    const ExecResult result = connection->exec(request);
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  static JobId new_id() { return JobId::random(); }
  fs::path folder(const JobId& id) { return servers.home("a") / "proj/.jobs" / id.text(); }
  std::string file(const JobId& id, const std::string& name) {
    return read_file_if_there(folder(id) / name).value_or("");
  }

  std::vector<StartReply> start_all(const std::vector<StartRequest>& requests) {
    return parse_start(exec(start_script({"~/proj", ".jobs"}, requests)));
  }
  JobId start(const std::string& command, std::vector<std::pair<std::string, std::string>> env = {},
              std::string activate = "") {
    StartRequest request{new_id(), command, std::move(activate), std::move(env)};
    const auto replies = start_all({request});
    EXPECT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies.at(0).outcome, StartReply::Outcome::started) << replies.at(0).reason;
    EXPECT_TRUE(replies.at(0).pid);
    EXPECT_EQ(replies.at(0).id, request.id);
    return request.id;
  }
  StatusReply status(const JobId& id, bool claim = false) {
    const StatusAnswer answer = parse_status(
        exec(status_script({"~/proj", ".jobs"}, {id}, claim ? std::vector{id} : std::vector<JobId>{})));
    return answer.jobs.at(0);
  }
  StatusReply wait_end(const JobId& id) {
    StatusReply reply;
    until(
        [&] {
          reply = status(id);
          return reply.phase != Phase::running && reply.phase != Phase::starting;
        },
        "the job's end");
    return reply;
  }
  KillReply kill(const JobId& id, int signal = SIGTERM, int grace = 5) {
    return parse_kill(exec(kill_script({"~/proj", ".jobs"}, {id}, signal, grace, "ada@laptop"))).at(0);
  }
  // Until the job has written this to its output.
  void until_out(const JobId& id, const std::string& text) {
    until([&] { return file(id, "job.out").find(text) != std::string::npos; }, text.c_str());
  }
  // Nothing runs any more on the pretended server.
  void expect_nothing_left() {
    until([&] { return servers.processes().empty(); }, "no process is left");
  }

  test::LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
};

TEST_P(JobScripts, StartsRunsAndEnds) {
  const JobId id = start("echo out; echo err >&2; pwd; exit 3");
  const StatusReply reply = wait_end(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result, ExitStatus::exited(3));
  EXPECT_TRUE(reply.started_at);
  EXPECT_TRUE(reply.ended_at);
  EXPECT_EQ(file(id, "job.out"), "out\n" + (servers.home("a") / "proj").string() + "\n");
  EXPECT_EQ(file(id, "job.err"), "err\n");
  EXPECT_EQ(reply.out_size, file(id, "job.out").size());
  EXPECT_EQ(reply.err_size, 4U);
  EXPECT_FALSE(reply.oom);
  EXPECT_FALSE(reply.stop_signal);
  const auto permissions = fs::status(folder(id) / "job.sh").permissions();
  EXPECT_EQ(permissions & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
  expect_nothing_left();
}

TEST_P(JobScripts, TellsTheMomentOfAFailuresLastWords) {
  const JobId id = start("echo why >&2; until [ -e ~/go ]; do sleep 0.05; done; exit 3");
  until([&] { return file(id, "job.err") == "why\n"; }, "its last words");
  // its clock has moved on by a tenth of a second, by its own account
  const auto later = fs::last_write_time(folder(id) / "job.err") + milliseconds(100);
  until(
      [&] {
        std::ofstream(servers.home("a") / "look") << "";
        return fs::last_write_time(servers.home("a") / "look") >= later;
      },
      "a tenth of a second");
  std::ofstream(servers.home("a") / "go") << "";
  const StatusReply reply = wait_end(id);
  const StatusAnswer answer = parse_status(exec(status_script({"~/proj", ".jobs"}, {id}, {})));
  if (GetParam() == test::ServerShell::busybox) {
    EXPECT_FALSE(reply.wrote_ms);
    EXPECT_FALSE(reply.done_ms);
    EXPECT_FALSE(answer.server_now_ms);
  } else {
    ASSERT_TRUE(reply.wrote_ms && reply.done_ms && reply.ended_at && answer.server_now_ms);
    EXPECT_GE(*reply.done_ms - *reply.wrote_ms, 99);
    EXPECT_LE(std::abs(*reply.done_ms / 1000 - *reply.ended_at), 2);
    EXPECT_GE(*answer.server_now_ms, *reply.done_ms);
    EXPECT_EQ(*answer.server_now_ms / 1000, answer.server_now);
  }
  const StatusReply fine = wait_end(start("echo why >&2"));
  EXPECT_FALSE(fine.wrote_ms);
  EXPECT_FALSE(fine.done_ms);
}

TEST_P(JobScripts, StartsOnce) {
  const JobId id = new_id();
  const StartRequest request{id, "echo once; sleep 60", "", {}};
  const auto first = start_all({request}).at(0);
  const auto second = start_all({request}).at(0);
  EXPECT_EQ(second.outcome, StartReply::Outcome::exists);
  EXPECT_EQ(second.pid, first.pid);
  until_out(id, "once");
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(status(id).pid, first.pid);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  EXPECT_EQ(file(id, "job.out"), "once\n");
  expect_nothing_left();
}

TEST_P(JobScripts, IgnoredSignalsAreNotHandedOn) {
  const StartRequest request{new_id(), "cat /proc/self/status", "", {}};
  ssh::ExecRequest exec_request;
  exec_request.command = "trap '' HUP INT TERM USR1; exec sh -s";
  exec_request.input = start_script({"~/proj", ".jobs"}, {request});
  EXPECT_EQ(parse_start(connection->exec(exec_request).out).at(0).outcome, StartReply::Outcome::started);
  EXPECT_EQ(wait_end(request.id).result, ExitStatus::exited(0));
  if (GetParam() != test::ServerShell::busybox) {  // whose env cannot
    EXPECT_NE(file(request.id, "job.out").find("SigIgn:\t0000000000000000\n"), std::string::npos);
  }
}

TEST_P(JobScripts, StartsAllRanksInOneExec) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back({new_id(), "echo rank $RANK", "", {{"RANK", std::to_string(i)}}});
  }
  const auto replies = start_all(requests);
  ASSERT_EQ(replies.size(), 8U);
  EXPECT_EQ(servers.commands(), 1);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(replies[i].outcome, StartReply::Outcome::started) << replies[i].reason;
    EXPECT_TRUE(replies[i].pid);
    EXPECT_EQ(wait_end(requests[i].id).result, ExitStatus::exited(0));
    EXPECT_EQ(file(requests[i].id, "job.out"), "rank " + std::to_string(i) + "\n");
  }
}

TEST_P(JobScripts, ValuesArriveExactly) {
  const std::string value = "a b  'q' \"d\" $HOME `id` \\n \\ %s\nline two\n\ttab é 漢 🎉 * ? ~ # ! \x01\x7f";
  const JobId id = start("printf %s \"$VALUE\"; printf '|%s|%s|%s' \"$EMPTY\" \"$HOME\" \"it's\"",
                         {{"VALUE", value}, {"EMPTY", ""}, {"HOME", "/else where"}});
  EXPECT_EQ(wait_end(id).result, ExitStatus::exited(0));
  EXPECT_EQ(file(id, "job.out"), value + "||/else where|it's");
}

TEST_P(JobScripts, ActivationComesFirst) {
  const JobId id =
      start("echo \"$VIA\"; tool", {}, "VIA='it''s set'; export VIA\ntool() { :; }\nPATH=$PWD/venv:$PATH");
  EXPECT_EQ(wait_end(id).result, ExitStatus::exited(127));
  EXPECT_EQ(file(id, "job.out"), "its set\n");
  for (const char* bad : {"false", "if then (", ". ./none/bin/activate"}) {
    const JobId failing = start("echo never", {}, bad);
    const StatusReply reply = wait_end(failing);
    ASSERT_TRUE(reply.result) << bad;
    EXPECT_FALSE(reply.result->success()) << bad;
    EXPECT_EQ(file(failing, "job.out"), "") << bad;
    EXPECT_NE(file(failing, "job.err"), "") << bad;
  }
}

TEST_P(JobScripts, ASimpleCommandIsThePidItself) {
  const JobId id = start("sleep 1000");
  const int pid = status(id).pid.value();
  until(
      [&] {
        const std::string line = test::command_line(pid);
        return line.ends_with(std::string("sleep\0001000\0", 11));
      },
      "the exec");
  ::kill(pid, SIGKILL);
  EXPECT_EQ(wait_end(id).result, ExitStatus::signalled(SIGKILL));
}

TEST_P(JobScripts, TheJobHasDefaultSignalsAndUmaskAndNoForeignFile) {
  const JobId id = start("cat /proc/self/status; umask; readlink /proc/$$/fd/0; echo /proc/$$/fd/[4-9]");
  EXPECT_EQ(wait_end(id).result, ExitStatus::exited(0));
  const std::string out = file(id, "job.out");
  const auto signals = [](const std::string& ignored) {
    return "SigBlk:\t0000000000000000\nSigIgn:\t000000000000000" + ignored + "\nSigCgt:\t0000000000000000\n";
  };
  // A login shell of busybox may hand SIGQUIT on as ignored (its -c), and what is ignored no sh can take
  // back.
  const bool without_quit =
      GetParam() == test::ServerShell::busybox && out.find(signals("4")) != std::string::npos;
  EXPECT_TRUE(without_quit || out.find(signals("0")) != std::string::npos) << out;
  EXPECT_NE(out.find("\n0022\n/dev/null\n/proc/"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("/fd/[4-9]\n")) << out;
}

TEST_P(JobScripts, TellsSignalsFromExitCodes) {
  std::vector<StartRequest> requests;
  std::vector<ExitStatus> expected;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
                           SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGSYS, 34, 64}) {
    if (number == SIGQUIT && GetParam() == test::ServerShell::busybox) {
      continue;  // ignored there, see above
    }
    requests.push_back(
        {new_id(), "ulimit -c 0; exec dash -c 'kill -" + std::to_string(number) + " $$; sleep 100'", "", {}});
    expected.push_back(ExitStatus::signalled(number));
  }
  for (const int code : {0, 1, 2, 126, 127, 128, 129, 131, 134, 137, 139, 143, 159, 192, 193, 254, 255}) {
    requests.push_back({new_id(), "exit " + std::to_string(code), "", {}});
    expected.push_back(ExitStatus::exited(code));
  }
  start_all(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const StatusReply reply = wait_end(requests[i].id);
    ASSERT_TRUE(reply.result) << requests[i].command << file(requests[i].id, "job.err");
    EXPECT_EQ(*reply.result, expected[i]) << requests[i].command << ": " << reply.result->describe();
  }
}

// Everything that a kill must find, each with a child that outlives a plain kill of the main process.
const char* const stubborn_children[] = {
    "trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done",
    "setsid sleep 1000 & echo up; wait",
    "(setsid sh -c 'sleep 1000 & exit' &); echo up; sleep 1000",
    "(setsid sh -c 'trap \"\" TERM; (sleep 1000; sleep 1000) & wait' &); echo up; exec sleep 1000",
    "sleep 1000 & kill -STOP $!; echo up; kill -STOP $$",
    "(setsid env -i sleep 1000 &); echo up; sleep 1000",
    "(env -i HOME=\"$HOME\" setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); sleep 1000",
    "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; echo up; wait",
};

TEST_P(JobScripts, KillLeavesNothing) {
  for (const char* command : stubborn_children) {
    SCOPED_TRACE(command);
    const JobId id = start(command);
    until_out(id, "up");
    const auto begin = std::chrono::steady_clock::now();
    const KillReply reply = kill(id, SIGTERM, 1);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
    EXPECT_GE(reply.signalled, 1);
    EXPECT_LT(took, std::chrono::seconds(4));
    EXPECT_EQ(reply.survivors, std::vector<std::string>{});
    EXPECT_EQ(servers.processes(), std::vector<int>{});
    const StatusReply after = status(id);
    EXPECT_EQ(after.phase, Phase::ended);
    ASSERT_TRUE(after.result);
    EXPECT_FALSE(after.result->success());
    EXPECT_EQ(after.stop_signal, SIGTERM);
    EXPECT_EQ(after.stop_by, "ada@laptop");
    EXPECT_EQ(kill(id).outcome, KillReply::Outcome::ended);
  }
}

TEST_P(JobScripts, KillLeavesOtherJobsAlone) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back({new_id(), "sleep 1000 & wait", "", {}});
  }
  start_all(requests);
  // A job that another one started, so it is in that one's process tree, is not its own.
  EXPECT_EQ(kill(requests[7].id).outcome, KillReply::Outcome::killed);
  EXPECT_EQ(status(requests[7].id).phase, Phase::ended);
  std::vector<JobId> others;
  for (int i = 0; i < 20; ++i) {
    if (i != 7) {
      others.push_back(requests[static_cast<std::size_t>(i)].id);
    }
  }
  const auto answer = parse_status(exec(status_script({"~/proj", ".jobs"}, others, {})));
  for (const StatusReply& job : answer.jobs) {
    EXPECT_EQ(job.phase, Phase::running);
  }
  EXPECT_GE(servers.processes().size(), 19U * 2);
  const auto killed = parse_kill(exec(kill_script({"~/proj", ".jobs"}, others, SIGKILL, 0, "")));
  EXPECT_EQ(killed.size(), 19U);
  for (const KillReply& reply : killed) {
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
  }
  EXPECT_EQ(servers.processes(), std::vector<int>{});
}

TEST_P(JobScripts, SideBySideNotOneAfterTheOther) {
  std::vector<StartRequest> requests;
  std::vector<JobId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(new_id());
    requests.push_back({ids.back(), stubborn_children[0], "", {}});
  }
  start_all(requests);
  for (const JobId& id : ids) {
    until_out(id, "up");
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const KillReply& reply : parse_kill(exec(kill_script({"~/proj", ".jobs"}, ids, SIGTERM, 1, "me")))) {
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(servers.processes(), std::vector<int>{});
}

// Between a kill's signal and its end the main process may be gone and others not: that is no end yet.
TEST_P(JobScripts, AnEndIsNotToldWhileSomethingLives) {
  const JobId id =
      start("(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); exec sleep 1000");
  until_out(id, "up");
  until([&] { return !file(id, "job.pid").empty(); }, "its pid");
  std::ofstream(folder(id) / "stop") << "15 ada 1700000000\n";
  ::kill(std::stoi(file(id, "job.pid")), SIGTERM);
  until([&] { return !file(id, "result").empty(); }, "the result");
  StatusReply reply = status(id);
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_TRUE(reply.left);
  ASSERT_TRUE(reply.pid);
  EXPECT_EQ(::kill(*reply.pid, 0), 0);
  EXPECT_EQ(kill(id, SIGTERM, 0).signalled, 2);
  reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result, ExitStatus::signalled(SIGTERM));
}

// How long a kill waits, without what a busy machine adds: on a clock that goes on with its pauses only.
class KillTimes : public JobScripts {
 protected:
  struct Times {
    double first = -1;   // the first signal
    double forced = -1;  // the first SIGKILL
    double all = -1;     // the whole action
    KillReply reply;
  };
  Times times_of(const JobId& id, int grace, const std::string& by = "exec sh -s") {
    std::string script = kill_script({"~/proj", ".jobs"}, {id}, SIGTERM, grace, "ada");
    const std::string call = "\nkill_begin 15 ";
    const std::size_t at = script.find(call);
    EXPECT_NE(at, std::string::npos);
    // nap takes hundredths off its text: 0.1 -> 10, 0.02 -> 2
    script.insert(at + 1,
                  "ticks=100000\n"
                  "read_clock() { clock=$ticks; }\n"
                  "nap() { tick=${1#0.}; case $tick in 0?) tick=${tick#0} ;; ?) tick=${tick}0 ;; esac\n"
                  "ticks=$((ticks + tick)); sleep 0.02; }\n"
                  "kill() { case \"$*\" in *CONT*) ;; *) echo \"sent $((ticks - 100000)) $*\" ;; esac\n"
                  "command kill \"$@\"; }\n");
    const std::size_t end = script.find("\nkill_finish\n", at);
    EXPECT_NE(end, std::string::npos);
    script.insert(end + 13, "echo \"took $((ticks - 100000))\"\n");
    ssh::ExecRequest request;
    request.command = by;
    request.input = script;
    const std::string out = connection->exec(request).out;
    Times times;
    for (const std::string& line : split(out, '\n')) {
      const auto words = split_words(line);
      if (words.size() >= 2 && words[0] == "took") {
        times.all = std::stoi(words[1]) / 100.0;
      } else if (words.size() >= 3 && words[0] == "sent") {
        const double when = std::stoi(words[1]) / 100.0;
        times.first = times.first < 0 ? when : times.first;
        times.forced = times.forced < 0 && words[2] == "-9" ? when : times.forced;
      }
    }
    times.reply = parse_kill(out).at(0);
    return times;
  }
};

TEST_P(KillTimes, TermAtOnceKillAfterTheGraceAndTheEndTwoSecondsLater) {
  const JobId obedient = start("echo up; exec sleep 1000");
  until_out(obedient, "up");
  Times times = times_of(obedient, 5);
  EXPECT_EQ(times.reply.outcome, KillReply::Outcome::killed);
  EXPECT_EQ(times.first, 0);
  EXPECT_EQ(times.forced, -1) << "it had no need of it";
  EXPECT_LT(times.all, 5) << "the grace is no time to wait out";

  const JobId deaf = start(stubborn_children[0]);
  until_out(deaf, "up");
  times = times_of(deaf, 1);
  EXPECT_EQ(times.reply.outcome, KillReply::Outcome::killed);
  EXPECT_EQ(times.first, 0);
  EXPECT_GE(times.forced, 1);
  EXPECT_LE(times.forced, 1.1);
  EXPECT_LE(times.all, 1 + 2);
}

TEST_P(KillTimes, WhatCannotBeKilledIsGivenUpTwoSecondsAfterTheGrace) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  for (const fs::path& path :
       {servers.bin().parent_path(), servers.home("a").parent_path(), servers.home("a")}) {
    fs::permissions(path, fs::perms::all);
  }
  for (const auto& entry : fs::recursive_directory_iterator(servers.home("a") / "proj")) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(servers.home("a") / "proj", fs::perms::all);
  const Times times = times_of(
      id, 1,
      "exec " + find_program("setpriv")->string() + " --reuid=65534 --regid=65534 --clear-groups sh -s");
  EXPECT_EQ(times.reply.outcome, KillReply::Outcome::survivors);
  EXPECT_GE(times.all, 1);
  EXPECT_LE(times.all, 1 + 2);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

TEST_P(JobScripts, LeftoversOfAnEndedJobAreEnded) {
  const JobId id = start("(setsid sh -c 'sleep 1000 & exit' &); exit 5");
  EXPECT_EQ(wait_end(id).result, ExitStatus::exited(5));
  until([&] { return servers.processes().size() == 1; }, "the daemon alone");
  const KillReply reply = kill(id);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_EQ(servers.processes(), std::vector<int>{});
  EXPECT_EQ(status(id).result, ExitStatus::exited(5));
  EXPECT_FALSE(status(id).stop_signal);
}

int supervisor_pid(const std::string& text) {
  return std::stoi(text);
}

// A supervisor whose `date` is killed again and again says how the job ended, but not when.
TEST_P(JobScripts, AResultWithoutItsTimeIsUnderstood) {
  const JobId id = start("exit 3");
  wait_end(id);
  std::ofstream(folder(id) / "result") << "exit 3 \n";
  const StatusReply reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result, ExitStatus::exited(3));
  EXPECT_FALSE(reply.ended_at);
}

TEST_P(JobScripts, ADeadSupervisorHidesNoJob) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  ::kill(supervisor_pid(file(id, "supervisor")), SIGKILL);
  StatusReply reply;
  until([&] { return !(reply = status(id)).supervised; }, "news of the supervisor");
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  EXPECT_EQ(servers.processes(), std::vector<int>{});
  EXPECT_EQ(status(id).phase, Phase::ended);
  EXPECT_EQ(status(id).result, ExitStatus::signalled(SIGTERM));
}

TEST_P(JobScripts, GoneWhenSupervisorAndJobAreDeadByForce) {
  const JobId id = start("echo up; sleep 1000 & wait");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  ::kill(supervisor_pid(file(id, "supervisor")), SIGKILL);
  ::kill(pid, SIGKILL);
  // its child lives on, and its cookie says whose it is
  until([&] { return servers.processes().size() == 1; }, "the child alone");
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_FALSE(status(id).supervised);
  ::kill(servers.processes().at(0), SIGKILL);
  until([&] { return status(id).phase == Phase::gone; }, "gone");
}

TEST_P(JobScripts, APidAloneProvesNothing) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const std::string supervisor = file(id, "supervisor");
  const int pid = status(id).pid.value();
  ::kill(supervisor_pid(supervisor), SIGKILL);
  ::kill(pid, SIGKILL);
  until([&] { return status(id).phase == Phase::gone; }, "gone");
  // both pids are those of living processes now, which started at another time
  std::ofstream(folder(id) / "job.pid") << ::getpid() << " 1\n";
  const auto words = split_words(supervisor);
  std::ofstream(folder(id) / "supervisor") << ::getpid() << " 1 " << words.at(2) << ' ' << ::getpid() << '\n';
  EXPECT_EQ(status(id).phase, Phase::gone);
  EXPECT_EQ(kill(id).signalled, 0);
  // and after a restart of the server not even both together
  std::ofstream(folder(id) / "supervisor") << words.at(0) << ' ' << words.at(1) << " another-boot -\n";
  fs::remove(folder(id) / "result");
  EXPECT_EQ(status(id).phase, Phase::rebooted);
}

TEST_P(JobScripts, AStoppedSupervisorAndAZombieAreSeenThrough) {
  const JobId id = start("sleep 1000");
  const int supervisor = supervisor_pid(file(id, "supervisor"));
  ::kill(supervisor, SIGSTOP);
  ::kill(status(id).pid.value(), SIGKILL);  // a zombie now: its parent is stopped
  EXPECT_EQ(status(id).phase, Phase::running);
  kill(id);
  EXPECT_EQ(status(id).result, ExitStatus::signalled(SIGKILL));
  EXPECT_EQ(servers.processes(), std::vector<int>{});
}

TEST_P(JobScripts, TheSupervisorOutlivesSignals) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const int supervisor = supervisor_pid(file(id, "supervisor"));
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1}) {
    ::kill(supervisor, number);
  }
  ::kill(status(id).pid.value(), SIGINT);
  EXPECT_EQ(wait_end(id).result, ExitStatus::signalled(SIGINT));
}

TEST_P(JobScripts, ARemovedFolderHoldsNoSupervisor) {
  const JobId id = start("echo up; sleep 1000");
  until_out(id, "up");
  const int pid = status(id).pid.value();
  fs::remove_all(folder(id));
  ::kill(pid, SIGKILL);
  expect_nothing_left();
}

TEST_P(JobScripts, AClaimedIdNeverStarts) {
  const JobId id = new_id();
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_FALSE(fs::exists(folder(id)));
  EXPECT_EQ(status(id, true).phase, Phase::none);
  const auto reply = start_all({{id, "echo late", "", {}}}).at(0);
  EXPECT_EQ(reply.outcome, StartReply::Outcome::exists);
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_EQ(file(id, "job.out"), "");
  // a kill of what is not there claims as well
  const JobId other = new_id();
  EXPECT_EQ(kill(other).outcome, KillReply::Outcome::none);
  EXPECT_EQ(start_all({{other, "echo late", "", {}}}).at(0).outcome, StartReply::Outcome::exists);
  EXPECT_EQ(status(other).phase, Phase::none);
}

TEST_P(JobScripts, AStarterThatDiedHalfWay) {
  // after mkdir
  const JobId bare = new_id();
  make_folders(folder(bare));
  EXPECT_EQ(status(bare).phase, Phase::starting);
  EXPECT_EQ(status(bare, true).phase, Phase::none);
  EXPECT_EQ(status(bare).phase, Phase::none);
  // with an empty supervisor file: its writer died in between
  const JobId empty = new_id();
  make_folders(folder(empty));
  std::ofstream(folder(empty) / "supervisor") << "";
  EXPECT_EQ(status(empty).phase, Phase::starting);
  EXPECT_EQ(status(empty, true).phase, Phase::none);
  EXPECT_EQ(status(empty).phase, Phase::none);
}

TEST_P(JobScripts, AsksAbout200JobsQuickly) {
  start("true");
  std::vector<JobId> ids;
  const std::string boot{trim(read_file("/proc/sys/kernel/random/boot_id"))};
  for (int i = 0; i < 200; ++i) {
    ids.push_back(new_id());
    make_folders(folder(ids.back()));
    std::ofstream(folder(ids.back()) / "supervisor") << ::getpid() << " 1 " << boot << " -\n";
    std::ofstream(folder(ids.back()) / "job.pid") << ::getpid() << " 1\n";
    std::ofstream(folder(ids.back()) / "job.out") << "12345";
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = parse_status(exec(status_script({"~/proj", ".jobs"}, ids, {})));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(answer.jobs.size(), 200U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(answer.jobs[i].id, ids[i]);
    EXPECT_EQ(answer.jobs[i].phase, Phase::gone);
    EXPECT_EQ(answer.jobs[i].out_size, 5U);
  }
  EXPECT_LT(took, std::chrono::seconds(3));
  RecordProperty("milliseconds", static_cast<int>(std::chrono::duration_cast<milliseconds>(took).count()));
}

// A program of this name for the pretended server.
void add_program(const test::LocalServers& servers, const std::string& name, const std::string& body) {
  fs::remove(servers.bin() / name);
  std::ofstream(servers.bin() / name) << "#!/bin/sh\n" << body;
  fs::permissions(servers.bin() / name,
                  fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
}

TEST_P(JobScripts, TheOutOfMemoryKillerIsTold) {
  // the counter, by a grep that reads it elsewhere
  const fs::path counter = servers.home("a") / "oom_kills";
  std::ofstream(counter) << "oom_kill 41\n";
  add_program(
      servers, "grep",
      "case $* in *oom_kill*) exec cat '" + counter.string() + "' ;; esac\nexec /usr/bin/grep \"$@\"\n");
  const JobId calm = start("exit 1");
  EXPECT_FALSE(wait_end(calm).oom);
  const JobId struck = start("echo 'oom_kill 43' >~/oom_kills; kill -9 $$");
  const StatusReply reply = wait_end(struck);
  EXPECT_EQ(reply.result, ExitStatus::signalled(SIGKILL));
  EXPECT_TRUE(reply.oom);
  EXPECT_EQ(file(struck, "oom"), "2\n");
  // another's trouble is no news about a job that did well
  const JobId fine = start("echo 'oom_kill 50' >~/oom_kills");
  EXPECT_FALSE(wait_end(fine).oom);
}

TEST_P(JobScripts, GpuMemoryThatIsStillHeldIsTold) {
  add_program(servers, "nvidia-smi", "cat \"$HOME/gpu_pids\"\n");
  const JobId id = start("exec sleep 1000");
  std::ofstream(servers.home("a") / "gpu_pids") << status(id).pid.value() << "\n1\nNo such device\n";
  const KillReply reply = kill(id);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::survivors);
  ASSERT_EQ(reply.survivors.size(), 1U);
  EXPECT_NE(reply.survivors[0].find("GPU memory"), std::string::npos);
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_TRUE(status(id).left);
  std::ofstream(servers.home("a") / "gpu_pids") << "1\n";
  EXPECT_EQ(status(id).phase, Phase::ended);
  const JobId other = start("exec sleep 1000");
  EXPECT_EQ(kill(other).outcome, KillReply::Outcome::killed);
}

TEST_P(JobScripts, WhatCannotBeKilledIsNamed) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  ssh::ExecRequest request;
  request.command =
      "exec " + find_program("setpriv")->string() + " --reuid=65534 --regid=65534 --clear-groups sh -s";
  request.input = kill_script({"~/proj", ".jobs"}, {id}, SIGTERM, 0, "nobody");
  for (const fs::path& path :
       {servers.bin().parent_path(), servers.home("a").parent_path(), servers.home("a")}) {
    fs::permissions(path, fs::perms::all);
  }
  // a folder that is another's: nothing can be said, and nothing is
  EXPECT_THROW(parse_kill(connection->exec(request).out), Error);
  // a folder that may be read, processes that are another's
  for (const auto& entry : fs::recursive_directory_iterator(servers.home("a") / "proj")) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(servers.home("a") / "proj", fs::perms::all);
  const KillReply reply = parse_kill(connection->exec(request).out).at(0);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::survivors);
  EXPECT_EQ(reply.signalled, 0);
  ASSERT_FALSE(reply.survivors.empty());
  EXPECT_NE(reply.survivors[0].find("(sleep, user root, state S)"), std::string::npos) << reply.survivors[0];
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

TEST_P(JobScripts, AFullDiskIsAnError) {
  // a file where the folder should be: nothing can be written below it, by root neither
  make_folders(servers.home("a") / "proj");
  std::ofstream(servers.home("a") / "proj/.jobs") << "";
  const std::string out = exec(start_script({"~/proj", ".jobs"}, {{new_id(), "true", "", {}}}));
  EXPECT_THROW(parse_start(out), Error);
}

TEST_P(JobScripts, FoldersMayHaveAnyName) {
  const std::string project = "~/it's a \"dir\" $HOME é";
  const StartRequest request{new_id(), "pwd", "", {}};
  EXPECT_EQ(parse_start(exec(start_script({project, ".my jobs"}, {request}))).at(0).outcome,
            StartReply::Outcome::started);
  const fs::path place = servers.home("a") / project.substr(2);
  until([&] { return fs::exists(place / ".my jobs" / request.id.text() / "result"); }, "the result");
  EXPECT_EQ(read_file(place / ".my jobs" / request.id.text() / "job.out"), place.string() + "\n");
  const auto answer = parse_status(exec(status_script({project, ".my jobs"}, {request.id}, {})));
  EXPECT_EQ(answer.jobs.at(0).result, ExitStatus::exited(0));
  EXPECT_GT(answer.jobs.at(0).out_size, 0U);
  EXPECT_EQ(parse_kill(exec(kill_script({project, ".my jobs"}, {request.id}, 15, 0, ""))).at(0).outcome,
            KillReply::Outcome::ended);
}

// What a follower got, and how.
struct Followed {
  std::string out;
  std::string err;
  std::unique_ptr<ssh::Channel> channel;
  std::pair<std::uint64_t, std::uint64_t> offsets;
};

class JobFollow : public JobScripts {
 protected:
  std::unique_ptr<Followed> follow(const FollowRequest& request) {
    auto followed = std::make_unique<Followed>();
    Followed* target = followed.get();
    followed->channel = connection->open("sh -s", [target](ssh::Stream stream, std::string_view data) {
      (stream == ssh::Stream::out ? target->out : target->err).append(data);
    });
    followed->channel->write(follow_script({"~/proj", ".jobs"}, request));
    // The header comes on both streams; an error on stdout alone, and then the channel ends.
    const auto whole = [](const std::string& text) {
      const std::size_t at = text.find("@remote1 ");
      return at != std::string::npos && text.find('\n', at) != std::string::npos;
    };
    pump_until(*followed, [&] { return whole(target->out) && whole(target->err); });
    for (std::string* text : {&target->err, &target->out}) {
      if (whole(*text)) {
        const std::size_t at = text->find("@remote1 ");
        const std::size_t end = text->find('\n', at);
        followed->offsets = parse_follow(text->substr(at, end - at)).value();
        text->erase(0, end + 1);
      }
    }
    return followed;
  }
  void pump_until(const Followed& followed, const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && !followed.channel->finished()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << "out: " << followed.out.substr(0, 1000);
      connection->pump(milliseconds(20));
    }
  }
};

TEST_P(JobFollow, EveryByteOnceUntilTheEnd) {
  // binary data, in pieces, on both streams, without a newline at the end
  const JobId id = start(
      "i=0; while [ $i -lt 20 ]; do head -c 50000 /dev/urandom; head -c 1000 /dev/urandom >&2; "
      "i=$((i+1)); sleep 0.01; done; printf end");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [] { return false; });
  EXPECT_TRUE(followed->channel->finished());
  EXPECT_EQ(followed->channel->status(), ExitStatus::exited(0));
  EXPECT_EQ(followed->out.size(), 1000003U);
  EXPECT_TRUE(followed->out == file(id, "job.out"));
  EXPECT_TRUE(followed->err == file(id, "job.err"));
  EXPECT_EQ(status(id).phase, Phase::ended);
  expect_nothing_left();
  // from the middle, after the end
  const auto again = follow({id, 500000, 19999, std::nullopt, true});
  pump_until(*again, [] { return false; });
  EXPECT_EQ(again->offsets, std::pair(std::uint64_t{500000}, std::uint64_t{19999}));
  EXPECT_TRUE(again->out == file(id, "job.out").substr(500000));
  EXPECT_TRUE(again->err == file(id, "job.err").substr(19999));
}

TEST_P(JobFollow, ALineWithoutNewlinePassesAndTheEndOfInputEndsIt) {
  const JobId id =
      start("printf one; echo e >&2; while ! [ -e go ]; do sleep 0.02; done; printf two; sleep 1000");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [&] { return followed->out == "one" && followed->err == "e\n"; });
  std::ofstream(servers.home("a") / "proj/go") << "";
  pump_until(*followed, [&] { return followed->out == "onetwo"; });
  EXPECT_FALSE(followed->channel->finished());
  const std::size_t with_follower = servers.processes().size();
  followed->channel->close_input();
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->out, "onetwo");
  EXPECT_EQ(followed->err, "e\n");
  until([&] { return servers.processes().size() == 2; }, "the follower's end");
  EXPECT_GT(with_follower, 2U);
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

TEST_P(JobFollow, NothingStaysBehindWhenTheClientIsGone) {
  const JobId id = start("while :; do echo line; sleep 0.01; done");
  {
    const auto followed = follow({id, 0, 0, std::nullopt, true});
    pump_until(*followed, [&] { return followed->out.size() > 20; });
  }
  until([&] { return servers.processes().size() <= 3; }, "the follower's end");
  // a kill is not disturbed by followers, nor does it end them as if they were the job's
  const auto followed = follow({id, 0, 0, 2, true});
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->channel->status(), ExitStatus::exited(0));
  EXPECT_EQ(followed->out, file(id, "job.out").substr(followed->offsets.first));
  expect_nothing_left();
}

TEST_P(JobFollow, TheLastLines) {
  const JobId id = start("i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done; printf part");
  EXPECT_EQ(wait_end(id).result, ExitStatus::exited(0));
  const std::string all = file(id, "job.out");
  for (const auto& [lines, text] : std::vector<std::pair<int, std::string>>{
           {0, ""}, {1, "part"}, {3, "line 29998\nline 29999\npart"}, {1000000, all}}) {
    const auto followed = follow({id, 0, 0, lines, false});
    pump_until(*followed, [] { return false; });
    EXPECT_TRUE(followed->out == text) << lines << followed->out.substr(0, 100);
    EXPECT_EQ(followed->offsets.first, all.size() - text.size());
    EXPECT_EQ(followed->offsets.second, 0U);
  }
}

TEST_P(JobFollow, NoSuchJobIsAnError) {
  const std::string out = [&] {
    ssh::ExecRequest request;
    request.input = follow_script({"~/proj", ".jobs"}, {new_id(), 0, 0, std::nullopt, true});
    const auto result = connection->exec(request);
    EXPECT_EQ(result.status, ExitStatus::exited(1));
    return result.out;
  }();
  EXPECT_THROW(parse_follow(trim(out)), Error);
}

TEST_P(JobFollow, AJobWhoseSupervisorDied) {
  const JobId id = start("printf one; while ! [ -e go ]; do sleep 0.02; done; echo two");
  const auto followed = follow({id, 0, 0, std::nullopt, true});
  pump_until(*followed, [&] { return followed->out == "one"; });
  ::kill(supervisor_pid(file(id, "supervisor")), SIGKILL);
  std::ofstream(servers.home("a") / "proj/go") << "";
  pump_until(*followed, [] { return false; });
  EXPECT_EQ(followed->out, "onetwo\n");
  EXPECT_EQ(status(id).phase, Phase::gone);
}

const auto shells =
    ::testing::Values(test::ServerShell::dash, test::ServerShell::bash, test::ServerShell::busybox);
const auto shell_name = [](const auto& one) { return test::to_string(one.param); };
INSTANTIATE_TEST_SUITE_P(Shells, JobScripts, shells, shell_name);
INSTANTIATE_TEST_SUITE_P(Shells, KillTimes, shells, shell_name);
INSTANTIATE_TEST_SUITE_P(Shells, JobFollow, shells, shell_name);

}  // namespace
}  // namespace remote::jobs
