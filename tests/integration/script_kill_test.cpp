#include <chrono>
#include <thread>

#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/subprocess.hpp"
#include "support/processes.hpp"
#include "support/program_as.hpp"
#include "support/script_test.hpp"

// What kill.sh ends and leaves alone, under every sh that servers have.

namespace remote::jobs {
namespace {

class JobKill : public test::ScriptTest {};

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

TEST_P(JobKill, KillLeavesNothing) {
  for (const char* command : stubborn_children) {
    SCOPED_TRACE(command);
    const JobId id = start(command);
    until_out(id, "up");
    const auto begin = std::chrono::steady_clock::now();
    const KillReply reply = kill(id, SIGTERM, 1);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
    EXPECT_GE(reply.signalled, 1);
    EXPECT_LT(took, std::chrono::seconds(20)) << "the grace is 1 s";
    EXPECT_EQ(reply.survivors, std::vector<std::string>{});
    EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
    const StatusReply after = status(id);
    EXPECT_EQ(after.phase, Phase::ended);
    ASSERT_TRUE(after.result());
    EXPECT_FALSE(after.result()->success());
    EXPECT_EQ(after.stop_signal, SIGTERM);
    EXPECT_EQ(after.stop_by, parse_by("ada@laptop"));
    EXPECT_EQ(kill(id).outcome, KillReply::Outcome::ended);
  }
}

TEST_P(JobKill, KillLeavesOtherJobsAlone) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back({JobId::random(), "sleep 1000 & wait", "", {}});
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
  const auto answer = run(status_action(jobs_folder, others, {}));
  for (const StatusReply& job : answer.jobs) {
    EXPECT_EQ(job.phase, Phase::running);
  }
  EXPECT_GE(servers.processes().size(), 19U * 2);
  const auto killed = run(kill_action(jobs_folder, others, {SIGKILL, 0, ""})).jobs;
  EXPECT_EQ(killed.size(), 19U);
  for (const KillReply& reply : killed) {
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
  }
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
}

// Nothing that a job started is older than it: such a process only writes where the job does, and cost a look
// at all its files.
TEST_P(JobKill, AProcessThatIsOlderThanTheJobIsAnother) {
  const fs::path gate = servers.home("a") / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", R"(read -r out <"$1"; exec sleep 1000 >>"$out")", "sh", gate.string()};
  spec.new_session = true;
  const Subprocess older(spec);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // starts are told in hundredths of a second
  const JobId id = start("(env -i setsid sleep 1000 &); echo up; exec sleep 1000");
  until_out(id, "up");
  std::ofstream(gate) << (folder(id) / "job.out").string() << '\n' << std::flush;
  const fs::path open = fs::path("/proc") / std::to_string(older.pid()) / "fd/1";
  until([&] { return fs::read_symlink(open) == fs::canonical(folder(id) / "job.out"); },
        "that it writes there");
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_TRUE(test::lives(older.pid()));
}

// As when a lifeline and who follows the launch end the ranks after a failure.
TEST_P(JobKill, TwoKillsAtOnceRecordWhoEndedTheJobs) {
  std::vector<StartRequest> requests;
  std::vector<JobId> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(JobId::random());
    // also jobs that end by a code of their own when they are signalled
    const char* command =
        i % 2 == 0 ? "exec sleep 1000" : "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done";
    requests.push_back({ids.back(), command, "", {}});
  }
  start_all(requests);
  for (std::size_t i = 1; i < ids.size(); i += 2) {
    until_out(ids[i], "up");
  }
  {
    const std::jthread other([&, mine = servers.connect("a")] {
      ssh::ExecRequest request;
      request.input = kill_action(jobs_folder, ids, {SIGTERM, 1, "lifeline"}).script.input();
      mine->exec(request);
    });
    run(kill_action(jobs_folder, ids, {SIGTERM, 1, "ada@laptop"}));
  }
  const auto answer = run(status_action(jobs_folder, ids, {}));
  ASSERT_EQ(answer.jobs.size(), ids.size());
  for (const StatusReply& job : answer.jobs) {
    EXPECT_EQ(job.phase, Phase::ended);
    EXPECT_EQ(job.stop_signal, SIGTERM);
  }
}

TEST_P(JobKill, SideBySideNotOneAfterTheOther) {
  std::vector<StartRequest> requests;
  std::vector<JobId> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(JobId::random());
    requests.push_back({ids.back(), stubborn_children[0], "", {}});
  }
  start_all(requests);
  for (const JobId& id : ids) {
    until_out(id, "up");
  }
  const auto begin = std::chrono::steady_clock::now();
  const KillAnswer answer = run(kill_action(jobs_folder, ids, {SIGTERM, 4, "me"}));
  for (const KillReply& reply : answer.jobs) {
    EXPECT_EQ(reply.outcome, KillReply::Outcome::killed);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "otherwise it is 24 s";
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
}

// Between a kill's signal and its end the main process may be gone and others not: that is no end yet.
TEST_P(JobKill, AnEndIsNotToldWhileSomethingLives) {
  const JobId id =
      start("(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); exec sleep 1000");
  until_out(id, "up");
  until([&] { return !file(id, "pid").empty(); }, "its pid");
  std::ofstream(folder(id) / "stop") << "15 ada 1700000000\n";
  ::kill(std::stoi(file(id, "pid")), SIGTERM);
  until([&] { return !file(id, "result").empty(); }, "the result");
  StatusReply reply = status(id);
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_TRUE(reply.left);
  ASSERT_TRUE(reply.pid);
  EXPECT_EQ(::kill(*reply.pid, 0), 0);
  EXPECT_EQ(kill(id, SIGTERM, 0).signalled, 2);
  reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result(), ExitStatus::signalled(SIGTERM));
}

TEST_P(JobKill, LeftoversOfAnEndedJobAreEnded) {
  const JobId id = start("(setsid sh -c 'sleep 1000 & exit' &); exit 5");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(5));
  until([&] { return servers.processes().size() == 1; }, "the daemon alone");
  const KillReply reply = kill(id);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_EQ(status(id).result(), ExitStatus::exited(5));
  EXPECT_FALSE(status(id).stop_signal);
}

TEST_P(JobKill, ADeathThatItDidNotCauseIsNotClaimed) {
  // nothing is left and there is no result
  const JobId lost = start("echo up; exec sleep 1000");
  until_out(lost, "up");
  ::kill(supervisor_of(lost), SIGKILL);
  ::kill(std::stoi(file(lost, "pid")), SIGKILL);
  expect_nothing_left();
  KillReply reply = kill(lost);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(reply.signalled, 0);
  EXPECT_EQ(status(lost).phase, Phase::gone);
  EXPECT_FALSE(status(lost).stop_signal);

  // only what it left behind is there to be ended
  const JobId orphaned = start("setsid sleep 1000 & echo up; exec sleep 1000");
  until_out(orphaned, "up");
  ::kill(supervisor_of(orphaned), SIGKILL);
  ::kill(std::stoi(file(orphaned, "pid")), SIGKILL);
  until([&] { return servers.processes().size() == 1; }, "the child alone");
  reply = kill(orphaned);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_EQ(status(orphaned).phase, Phase::gone);

  // it failed by itself; its supervisor, which was stopped, tells so once the kill lets it go on
  const JobId failed = start("echo up; exec sleep 1000");
  until_out(failed, "up");
  const pid_t supervisor = supervisor_of(failed);
  ::kill(supervisor, SIGSTOP);
  ::kill(std::stoi(file(failed, "pid")), SIGSEGV);
  reply = kill(failed);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(status(failed).result(), ExitStatus::signalled(SIGSEGV));
  EXPECT_FALSE(status(failed).stop_signal);
}

// As on a disk that has become read-only: the supervisor tries for ten minutes to write the result.
TEST_P(JobKill, ASupervisorThatCannotWriteTheResultIsEndedToo) {
  // in its folder no more than in the second place
  servers.add_program("mv", "case $* in *result*) exit 1 ;; esac\nexec /bin/mv \"$@\"\n");
  const JobId id = start("ulimit -c 0; echo up; exec sleep 1000");
  until_out(id, "up");
  const int pid = std::stoi(file(id, "pid"));
  ::kill(pid, SIGKILL);
  until([&] { return servers.processes().size() == 2 && !test::lives(pid); }, "the supervisor and its sleep");
  const KillReply reply = kill(id, SIGTERM, 0);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::ended);
  EXPECT_EQ(reply.survivors, std::vector<std::string>{});
  expect_nothing_left();
  EXPECT_EQ(status(id).phase, Phase::gone);
}

TEST_P(JobKill, GpuMemoryThatIsStillHeldIsTold) {
  servers.add_program("nvidia-smi", "cat \"$HOME/gpu_pids\"\n");
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

// Nothing of the job lives, and this kill is the only one left to tell how it ended: it waits for the driver
// here.
TEST_P(JobKill, AJobWithoutASupervisorIsNotGoneBeforeItsKillHasSaidHowItEnded) {
  servers.add_program("nvidia-smi",
                      "! [ -e \"$HOME/hold\" ] || { : >\"$HOME/held\"; while [ -e \"$HOME/hold\" ]; do sleep "
                      "0.02; done; }\n");
  const JobId id = start("echo up; exec sleep 1000");
  until_out(id, "up");
  ::kill(supervisor_of(id), SIGKILL);
  until([&] { return !status(id).supervised; }, "the supervisor's end");
  std::ofstream(servers.home("a") / "hold");
  {
    const std::jthread killer([&, mine = servers.connect("a")] {
      ssh::ExecRequest request;
      request.input = kill_action(jobs_folder, {id}, {SIGTERM, 5, "ada@laptop"}).script.input();
      EXPECT_EQ(read_answer<KillAnswer>(mine->exec(request).out).jobs.at(0).outcome,
                KillReply::Outcome::killed);
    });
    until([&] { return fs::exists(servers.home("a") / "held"); }, "the kill that waits");
    EXPECT_FALSE(test::lives(std::stoi(file(id, "pid"))));
    const StatusReply meanwhile = status(id);
    fs::remove(servers.home("a") / "hold");
    EXPECT_EQ(meanwhile.phase, Phase::running);
  }
  EXPECT_EQ(status(id).result(), ExitStatus::signalled(SIGTERM));
  fs::remove(folder(id) / "result");  // as one that died before it could tell
  EXPECT_EQ(status(id).phase, Phase::gone);
}

TEST_P(JobKill, WhatCannotBeKilledIsNamed) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  const ssh::ExecRequest request = test::program_as(
      "exec " + find_program("setpriv")->string() + " --reuid=65534 --regid=65534 --clear-groups",
      kill_action(jobs_folder, {id}, {SIGTERM, 0, "nobody"}).script.input());
  for (const fs::path& path :
       {servers.bin().parent_path(), servers.home("a").parent_path(), servers.home("a")}) {
    fs::permissions(path, fs::perms::all);
  }
  // a folder that is another's: nothing can be said, and nothing is done
  const KillReply refused = read_answer<KillAnswer>(test::program_output(*connection, request)).jobs.at(0);
  EXPECT_EQ(refused.outcome, KillReply::Outcome::refused);
  EXPECT_NE(refused.reason.find("no right to look into"), std::string::npos) << refused.reason;
  // a folder that may be read, processes that are another's
  for (const auto& entry : fs::recursive_directory_iterator(place())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(place(), fs::perms::all);
  const KillReply reply = read_answer<KillAnswer>(test::program_output(*connection, request)).jobs.at(0);
  EXPECT_EQ(reply.outcome, KillReply::Outcome::survivors);
  EXPECT_EQ(reply.signalled, 0);
  ASSERT_FALSE(reply.survivors.empty());
  EXPECT_NE(reply.survivors[0].find("(sleep, user root, state S)"), std::string::npos) << reply.survivors[0];
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

// How long a kill waits, without what a busy machine adds: on a clock that goes on with its pauses only.
class KillTimes : public JobKill {
 protected:
  struct Times {
    double first = -1;   // the first signal
    double forced = -1;  // the first SIGKILL
    double all = -1;     // the whole action
    KillReply reply;
  };
  Times times_of(const JobId& id, int grace, const std::string& before = "exec") {
    std::string script = kill_action(jobs_folder, {id}, {SIGTERM, grace, "ada"}).script.input();
    const std::size_t at = script.find("\n:kill_begin\n");
    EXPECT_NE(at, std::string::npos);
    // nap takes hundredths off its text: 0.1 -> 10, 0.02 -> 2
    script.insert(
        at + 1,
        servers::Script()
            .append("ticks=100000\n"
                    "read_clock() { clock=$ticks; }\n"
                    "nap() { tick=${1#0.}; case $tick in 0?) tick=${tick#0} ;; ?) tick=${tick}0 ;; esac\n"
                    "ticks=$((ticks + tick)); sleep 0.02; }\n"
                    "kill() { case \"$*\" in *CONT*) ;; *) echo \"sent $((ticks - 100000)) $*\" ;; esac\n"
                    "command kill \"$@\"; }\n")
            .text());
    const std::string call = "\n:kill_finish\n";
    const std::size_t end = script.find(call, at);
    EXPECT_NE(end, std::string::npos);
    script.insert(end + call.size(), servers::Script().append("echo \"took $((ticks - 100000))\"\n").text());
    const std::string out = test::program_output(*connection, test::program_as(before, script));
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
    times.reply = read_answer<KillAnswer>(out).jobs.at(0);
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
  for (const auto& entry : fs::recursive_directory_iterator(place())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(place(), fs::perms::all);
  const Times times = times_of(
      id, 1, "exec " + find_program("setpriv")->string() + " --reuid=65534 --regid=65534 --clear-groups");
  EXPECT_EQ(times.reply.outcome, KillReply::Outcome::survivors);
  EXPECT_GE(times.all, 1);
  EXPECT_LE(times.all, 1 + 2);
  EXPECT_EQ(kill(id).outcome, KillReply::Outcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobKill, test::every_shell, test::shell_name);
INSTANTIATE_TEST_SUITE_P(Shells, KillTimes, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
