#include <chrono>
#include <thread>

#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/subprocess.hpp"
#include "jobs/from_wire.hpp"
#include "support/job_journal.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"
#include "support/waiting.hpp"

// Which processes stopping a job ends and which it leaves alone, with every sh that servers have.

namespace remote::jobs {
namespace {

class JobKill : public test::ScriptTest {};

// All kinds of processes that a kill must find, each with a child that survives a plain kill of the main
// process.
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
    const wire::StopResult reply = kill(id, SIGTERM, 1);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(reply.outcome, StopOutcome::killed);
    EXPECT_GE(reply.signalled, 1);
    EXPECT_LT(took, test::patience) << "the grace is 1 s";
    EXPECT_TRUE(reply.survivors.empty());
    EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
    const wire::JobReport after = status(id);
    EXPECT_EQ(after.phase, Phase::ended);
    ASSERT_TRUE(result_of(after));
    EXPECT_FALSE(result_of(after)->success());
    EXPECT_EQ(after.stop.value().signal, SIGTERM);
    EXPECT_EQ(after.stop.value().by, by_ada);
    EXPECT_EQ(kill(id).outcome, StopOutcome::ended);
  }
}

TEST_P(JobKill, KillLeavesOtherJobsAlone) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back({JobId::random(), "sleep 1000 & wait", "", {}});
  }
  start_all(requests);
  // A job started by another job is in that job's process tree, but does not belong to it.
  EXPECT_EQ(kill(requests[7].id).outcome, StopOutcome::killed);
  EXPECT_EQ(status(requests[7].id).phase, Phase::ended);
  std::vector<JobId> others;
  for (int i = 0; i < 20; ++i) {
    if (i != 7) {
      others.push_back(requests[static_cast<std::size_t>(i)].id);
    }
  }
  for (const auto& [id, job] : status_of(others)) {
    EXPECT_EQ(job.phase, Phase::running);
  }
  EXPECT_GE(servers.processes().size(), 19U * 2);
  const auto killed = kill_all(others, SIGKILL, 0);
  EXPECT_EQ(killed.size(), 19U);
  for (const auto& [id, reply] : killed) {
    EXPECT_EQ(reply.outcome, StopOutcome::killed);
  }
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
}

// No process of a job is older than the job: an older process only writes to the same file, and it would take
// a scan of all its files to find it.
TEST_P(JobKill, AProcessThatIsOlderThanTheJobIsAnother) {
  const fs::path gate = servers.home("a") / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", R"(read -r out <"$1"; exec sleep 1000 >>"$out")", "sh", gate.string()};
  spec.new_session = true;
  const Subprocess older(spec);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // start times are in hundredths of a second
  const JobId id = start("(env -i setsid sleep 1000 &); echo up; exec sleep 1000");
  until_out(id, "up");
  std::ofstream(gate) << (folder(id) / "job.out").string() << '\n' << std::flush;
  const fs::path open = fs::path("/proc") / std::to_string(older.pid()) / "fd/1";
  // while the shell redirects it, there is no such file for a moment
  std::error_code none;
  until([&] { return fs::read_symlink(open, none) == fs::canonical(folder(id) / "job.out"); },
        "that it writes there");
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_TRUE(test::lives(older.pid()));
}

// As when a lifeline and the following client both stop the ranks after a failure.
TEST_P(JobKill, TwoKillsAtOnceRecordWhoEndedTheJobs) {
  std::vector<StartRequest> requests;
  std::vector<JobId> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(JobId::random());
    // also jobs that exit with their own code when signalled
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
      ask_stop({*mine, Cancel()}, {.folder = jobs_folder, .ids = ids, .grace_s = 1});
    });
    kill_all(ids, SIGTERM, 1);
  }
  const auto reports = status_of(ids);
  ASSERT_EQ(reports.size(), ids.size());
  for (const auto& [id, job] : reports) {
    EXPECT_EQ(job.phase, Phase::ended);
    ASSERT_TRUE(job.stop);
    EXPECT_EQ(job.stop->signal, SIGTERM);
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
  for (const auto& [id, reply] : kill_all(ids, SIGTERM, 10)) {
    EXPECT_EQ(reply.outcome, StopOutcome::killed);
  }
  // The test is about the grace periods.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "otherwise it is 60 s";
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
}

// Between a kill's signal and the end, the main process may be gone while others live: the job has not ended
// yet.
TEST_P(JobKill, AnEndIsNotToldWhileSomethingLives) {
  const JobId id =
      start("(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &); exec sleep 1000");
  until_out(id, "up");
  until([&] { return !file(id, "pid").empty(); }, "its pid");
  std::ofstream(folder(id) / "journal.jsonl", std::ios::app)
      << "{\"kind\":\"stop_requested\",\"stop\":{\"signal\":15,\"by\":{\"cause\":\"user\",\"number\":0,"
         "\"text\":\"ada\"},\"at\":1700000000000},\"stopper\":{\"pid\":1,\"start\":1},\"records_end\":false}"
         "\n";
  ::kill(std::stoi(file(id, "pid")), SIGTERM);
  until([&] { return test::has_ended(folder(id)); }, "the result");
  wire::JobReport reply = status(id);
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_TRUE(reply.left);
  ASSERT_TRUE(reply.pid);
  EXPECT_EQ(::kill(*reply.pid, 0), 0);
  EXPECT_EQ(kill(id, SIGTERM, 0).signalled, 2);
  reply = status(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(result_of(reply), ExitStatus::signalled(SIGTERM));
}

TEST_P(JobKill, LeftoversOfAnEndedJobAreEnded) {
  const JobId id = start("(setsid sh -c 'sleep 1000 & exit' &); exit 5");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(5));
  until([&] { return servers.processes().size() == 1; }, "the daemon alone");
  const wire::StopResult reply = kill(id);
  EXPECT_EQ(reply.outcome, StopOutcome::ended);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_EQ(servers.processes(), std::vector<pid_t>{});
  EXPECT_EQ(result_of(status(id)), ExitStatus::exited(5));
  EXPECT_FALSE(status(id).stop);
}

TEST_P(JobKill, ADeathThatItDidNotCauseIsNotClaimed) {
  // nothing is left and there is no result
  const JobId lost = start("echo up; exec sleep 1000");
  until_out(lost, "up");
  ::kill(supervisor_of(lost), SIGKILL);
  ::kill(std::stoi(file(lost, "pid")), SIGKILL);
  expect_nothing_left();
  wire::StopResult reply = kill(lost);
  EXPECT_EQ(reply.outcome, StopOutcome::ended);
  EXPECT_EQ(reply.signalled, 0);
  EXPECT_EQ(status(lost).phase, Phase::gone);
  EXPECT_FALSE(status(lost).stop);

  // only leftover processes can be stopped
  const JobId orphaned = start("setsid sleep 1000 & echo up; exec sleep 1000");
  until_out(orphaned, "up");
  ::kill(supervisor_of(orphaned), SIGKILL);
  ::kill(std::stoi(file(orphaned, "pid")), SIGKILL);
  until([&] { return servers.processes().size() == 1; }, "the child alone");
  reply = kill(orphaned);
  EXPECT_EQ(reply.outcome, StopOutcome::ended);
  EXPECT_EQ(reply.signalled, 1);
  EXPECT_EQ(status(orphaned).phase, Phase::gone);

  // it failed on its own; its stopped supervisor reports that when the kill resumes it
  const JobId failed = start("echo up; exec sleep 1000");
  until_out(failed, "up");
  const pid_t supervisor = supervisor_of(failed);
  ::kill(supervisor, SIGSTOP);
  ::kill(std::stoi(file(failed, "pid")), SIGSEGV);
  reply = kill(failed);
  EXPECT_EQ(reply.outcome, StopOutcome::ended);
  EXPECT_EQ(result_of(status(failed)), ExitStatus::signalled(SIGSEGV));
  EXPECT_FALSE(status(failed).stop);
}

TEST_P(JobKill, GpuMemoryThatIsStillHeldIsTold) {
  servers.add_program("nvidia-smi", "cat \"$HOME/gpu_pids\"\n");
  const JobId id = start("exec sleep 1000");
  std::ofstream(servers.home("a") / "gpu_pids") << status(id).pid.value() << "\n1\nNo such device\n";
  const wire::StopResult reply = kill(id);
  EXPECT_EQ(reply.outcome, StopOutcome::survivors);
  ASSERT_EQ(reply.survivors.size(), 1U);
  EXPECT_NE(describe(reply.survivors[0]).find("GPU memory"), std::string::npos);
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_TRUE(status(id).left);
  std::ofstream(servers.home("a") / "gpu_pids") << "1\n";
  EXPECT_EQ(status(id).phase, Phase::ended);
  const JobId other = start("exec sleep 1000");
  EXPECT_EQ(kill(other).outcome, StopOutcome::killed);
}

// No process of the job is alive, and only this kill can report how it ended. Here it waits for the driver.
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
      const StopAnswer answer =
          ask_stop({*mine, Cancel()}, {.folder = jobs_folder, .ids = {id}, .grace_s = 5});
      EXPECT_EQ(answer.results.at(id).outcome, StopOutcome::killed);
    });
    until([&] { return fs::exists(servers.home("a") / "held"); }, "the kill that waits");
    EXPECT_FALSE(test::lives(std::stoi(file(id, "pid"))));
    const wire::JobReport meanwhile = status(id);
    fs::remove(servers.home("a") / "hold");
    EXPECT_EQ(meanwhile.phase, Phase::running);
  }
  EXPECT_EQ(result_of(status(id)), ExitStatus::signalled(SIGTERM));
  fs::remove(folder(id) / "journal.jsonl");  // like a supervisor that died before it could report
  EXPECT_EQ(status(id).phase, Phase::gone);
}

TEST_P(JobKill, WhatCannotBeKilledIsNamed) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  status(id);  // starts this user's agent first
  test::AsNobody nobody(servers);
  const auto kill_as_nobody = [&] {
    return ask_stop(nobody.agent(), {.folder = jobs_folder, .ids = {id}}).results.at(id);
  };
  // a folder of another user: nothing is reported or done
  const wire::StopResult refused = kill_as_nobody();
  EXPECT_EQ(refused.outcome, StopOutcome::refused);
  EXPECT_NE(refused.reason.find("no permission to read"), std::string::npos) << refused.reason;
  // a readable folder, but processes of another user
  for (const auto& entry : fs::recursive_directory_iterator(place())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(place(), fs::perms::all);
  const wire::StopResult reply = kill_as_nobody();
  EXPECT_EQ(reply.outcome, StopOutcome::survivors);
  EXPECT_EQ(reply.signalled, 0);
  ASSERT_FALSE(reply.survivors.empty());
  const std::string survivor = describe(reply.survivors[0]);
  EXPECT_NE(survivor.find("(sleep, user root, state S)"), std::string::npos) << survivor;
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
}

// How long stopping waits. Only the lower limits are exact; a busy machine takes longer.
class KillTimes : public JobKill {
 protected:
  template <typename Stop>
  std::chrono::milliseconds time(const Stop& stop) {
    const auto begin = std::chrono::steady_clock::now();
    stop();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  }
  // The time the job wrote this, from this machine's clock.
  std::chrono::milliseconds moment_in(const JobId& id, const std::string& name) {
    return std::chrono::milliseconds(parse_number<std::int64_t>(trim(file(id, name))).value());
  }
};

TEST_P(KillTimes, TermAtOnceKillAfterTheGraceAndTheEndTwoSecondsLater) {
  const JobId obedient = start("echo up; exec sleep 1000");
  until_out(obedient, "up");
  wire::StopResult result;
  const auto short_time = time([&] { result = kill(obedient, SIGTERM, 300); });
  EXPECT_EQ(result.outcome, StopOutcome::killed);
  EXPECT_LT(short_time, test::patience) << "the grace is not waited out";
  EXPECT_EQ(result_of(status(obedient)), ExitStatus::signalled(SIGTERM)) << "it needed no KILL";

  // It records when it got TERM, and then every moment that it is still alive.
  const JobId deaf = start(
      "exec /usr/bin/python3 -c '\n"
      "import os, signal, time\n"
      "folder = \".jobs/\" + os.environ[\"REMOTE_JOB_ID\"]\n"
      "def note(name):\n"
      "  with open(folder + \"/.\" + name, \"w\") as file: print(int(time.time() * 1000), file=file)\n"
      "  os.rename(folder + \"/.\" + name, folder + \"/\" + name)\n"
      "signal.signal(signal.SIGTERM, lambda *_: note(\"told\"))\n"
      "print(\"up\", flush=True)\n"
      "while True:\n"
      "  time.sleep(0.02)\n"
      "  note(\"alive\")\n"
      "'");
  until_out(deaf, "up");
  const auto whole = time([&] { result = kill(deaf, SIGTERM, 1); });
  EXPECT_EQ(result.outcome, StopOutcome::killed);
  EXPECT_GE(moment_in(deaf, "alive") - moment_in(deaf, "told"), std::chrono::milliseconds(800));
  EXPECT_GE(whole, std::chrono::seconds(1));
  EXPECT_LT(whole, test::patience);
}

TEST_P(KillTimes, WhatCannotBeKilledIsGivenUpTwoSecondsAfterTheGrace) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  status(id);  // starts this user's agent first
  test::AsNobody nobody(servers);
  for (const auto& entry : fs::recursive_directory_iterator(place())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(place(), fs::perms::all);
  wire::StopResult result;
  const auto whole = time([&] {
    result = ask_stop(nobody.agent(), {.folder = jobs_folder, .ids = {id}, .grace_s = 1}).results.at(id);
  });
  EXPECT_EQ(result.outcome, StopOutcome::survivors);
  EXPECT_GE(whole, std::chrono::seconds(1));
  EXPECT_LT(whole, test::patience);
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobKill, test::every_shell, test::shell_name);
INSTANTIATE_TEST_SUITE_P(Shells, KillTimes, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
