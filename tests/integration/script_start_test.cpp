#include <gmock/gmock.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "servers/agent.hpp"
#include "support/job_journal.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"

// How jobs start, with every sh that servers have.

namespace remote::jobs {
namespace {

class JobStart : public test::ScriptTest {};

TEST_P(JobStart, StartsRunsAndEnds) {
  const JobId id = start("echo out; echo err >&2; pwd; exit 3");
  const wire::JobReport reply = wait_end(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(result_of(reply), ExitStatus::exited(3));
  EXPECT_TRUE(reply.started_at);
  EXPECT_TRUE(reply.end->at);
  EXPECT_EQ(file(id, "job.out"), "out\n" + (place()).string() + "\n");
  EXPECT_EQ(file(id, "job.err"), "err\n");
  EXPECT_EQ(reply.out_size, file(id, "job.out").size());
  EXPECT_EQ(reply.err_size, 4U);
  EXPECT_FALSE(reply.oom);
  EXPECT_FALSE(reply.stop);
  const auto permissions = fs::status(folder(id) / "spec.json").permissions();
  EXPECT_EQ(permissions & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
  expect_nothing_left();
}

TEST_P(JobStart, StartsOnce) {
  const JobId id = JobId::random();
  const StartRequest request{id, "echo once; sleep 60", "", {}};
  const auto first = start_all({request}).at(0);
  const auto second = start_all({request}).at(0);
  EXPECT_EQ(second.outcome, StartOutcome::exists);
  EXPECT_EQ(second.pid, first.pid);
  until_out(id, "once");
  EXPECT_EQ(status(id).phase, Phase::running);
  EXPECT_EQ(status(id).pid, first.pid);
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
  EXPECT_EQ(file(id, "job.out"), "once\n");
  expect_nothing_left();
}

// glibc's posix_spawn(3), which starts the simulated server, ignores glibc's two private signals in every
// child.
std::string without_private_signals(std::string status) {
  const std::string ignored = "SigIgn:\t0000000180";
  if (const std::size_t at = status.find(ignored); at != std::string::npos) {
    status.replace(at, ignored.size(), "SigIgn:\t0000000000");
  }
  return status;
}

TEST_P(JobStart, IgnoredSignalsAreNotHandedOn) {
  const StartRequest request{JobId::random(), "cat /proc/self/status", "", {}};
  test::WrappedConnection deaf(*connection);
  deaf.run_behind("trap '' HUP INT TERM USR1; exec");
  EXPECT_EQ(ask_start({deaf, cancel}, {.folder = jobs_folder, .requests = {request}}).at(0).outcome,
            StartOutcome::started);
  EXPECT_EQ(result_of(wait_end(request.id)), ExitStatus::exited(0));
  if (GetParam() != test::ServerShell::busybox) {  // its env does not support this
    EXPECT_THAT(without_private_signals(file(request.id, "job.out")),
                ::testing::HasSubstr("SigIgn:\t0000000000000000\n"));
  }
}

TEST_P(JobStart, StartsAllRanksWithOneCommand) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back({JobId::random(), "echo rank $RANK", "", {{"RANK", std::to_string(i)}}});
  }
  wait_end(start("exit 0"));  // the program is installed now
  const int before = servers.commands();
  const auto replies = start_all(requests);
  ASSERT_EQ(replies.size(), 8U);
  EXPECT_EQ(servers.commands(), before + 1);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(replies[i].outcome, StartOutcome::started) << replies[i].reason;
    EXPECT_TRUE(replies[i].pid);
    EXPECT_EQ(result_of(wait_end(requests[i].id)), ExitStatus::exited(0));
    EXPECT_EQ(file(requests[i].id, "job.out"), "rank " + std::to_string(i) + "\n");
  }
}

TEST_P(JobStart, ValuesArriveExactly) {
  const std::string value = "a b  'q' \"d\" $HOME `id` \\n \\ %s\nline two\n\ttab é 漢 🎉 * ? ~ # ! \x01\x7f";
  const JobId id = start("printf %s \"$VALUE\"; printf '|%s|%s|%s' \"$EMPTY\" \"$HOME\" \"it's\"",
                         {{"VALUE", value}, {"EMPTY", ""}, {"HOME", "/else where"}});
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(0));
  EXPECT_EQ(file(id, "job.out"), value + "||/else where|it's");
}

// Longer than a single argument can be.
TEST_P(JobStart, ALongCommandRuns) {
  const JobId id = start("echo begin; : " + std::string(300'000, 'x') + "; echo end");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(0));
  EXPECT_EQ(file(id, "job.out"), "begin\nend\n");
}

// A sweep in a queue starts thousands at once. These already have a folder, so nothing runs.
TEST_P(JobStart, ManyJobsMayBeStartedAtOnce) {
  if (GetParam() != test::ServerShell::dash) {
    GTEST_SKIP() << "no shell takes part";
  }
  std::vector<StartRequest> requests;
  for (int i = 0; i < 2000; ++i) {
    const JobId id = JobId::random();
    make_folders(folder(id));
    requests.push_back({id, "true", "", {{"POINT", std::to_string(i) + std::string(1000, 'x')}}});
  }
  const auto replies = start_all(requests);
  ASSERT_EQ(replies.size(), requests.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].id, requests[i].id.text());
    EXPECT_EQ(replies[i].outcome, StartOutcome::exists) << replies[i].reason;
  }
}

TEST_P(JobStart, ActivationComesFirst) {
  const JobId id =
      start("echo \"$VIA\"; tool", {}, "VIA='it''s set'; export VIA\ntool() { :; }\nPATH=$PWD/venv:$PATH");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(127));
  EXPECT_EQ(file(id, "job.out"), "its set\n");
  for (const char* bad : {"false", "if then (", ". ./none/bin/activate"}) {
    const JobId failing = start("echo never", {}, bad);
    const wire::JobReport reply = wait_end(failing);
    ASSERT_TRUE(reply.end) << bad;
    EXPECT_FALSE(reply.end->how.succeeded()) << bad;
    EXPECT_EQ(file(failing, "job.out"), "") << bad;
    EXPECT_NE(file(failing, "job.err"), "") << bad;
  }
}

TEST_P(JobStart, ASimpleCommandIsThePidItself) {
  const JobId id = start("sleep 1000");
  const int pid = status(id).pid.value();
  until(
      [&] {
        const std::string line = test::command_line(pid);
        return line.ends_with(std::string("sleep\0001000\0", 11));
      },
      "the exec");
  ::kill(pid, SIGKILL);
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::signalled(SIGKILL));
}

TEST_P(JobStart, AJobThatKillsItsProcessGroupHasAResult) {
  EXPECT_EQ(result_of(wait_end(start("kill -9 0; sleep 10"))), ExitStatus::signalled(SIGKILL));
}

TEST_P(JobStart, TheJobHasDefaultSignalsAndUmaskAndNoForeignFile) {
  const JobId id = start("cat /proc/self/status; umask; readlink /proc/$$/fd/0; echo /proc/$$/fd/[4-9]");
  EXPECT_EQ(result_of(wait_end(id)), ExitStatus::exited(0));
  const std::string out = without_private_signals(file(id, "job.out"));
  const auto signals = [](const std::string& ignored) {
    return "SigBlk:\t0000000000000000\nSigIgn:\t000000000000000" + ignored + "\nSigCgt:\t0000000000000000\n";
  };
  // busybox's login shell (its -c) may pass on SIGQUIT as ignored, and no sh can restore a signal that was
  // ignored at its start.
  const bool without_quit =
      GetParam() == test::ServerShell::busybox && out.find(signals("4")) != std::string::npos;
  EXPECT_TRUE(without_quit || out.find(signals("0")) != std::string::npos) << out;
  EXPECT_NE(out.find("\n0022\n/dev/null\n/proc/"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("/fd/[4-9]\n")) << out;
}

TEST_P(JobStart, AClaimedIdNeverStarts) {
  make_folders(place());
  const JobId id = JobId::random();
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_FALSE(fs::exists(folder(id)));
  EXPECT_EQ(status(id, true).phase, Phase::none);
  const auto reply = start_all({{id, "echo late", "", {}}}).at(0);
  EXPECT_EQ(reply.outcome, StartOutcome::exists);
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_EQ(file(id, "job.out"), "");
  // A kill of a job that may not have started yet claims its id, too.
  const JobId other = JobId::random();
  EXPECT_EQ(kill_all({other}, SIGTERM, 5, {other}).at(other).outcome, StopOutcome::none);
  EXPECT_EQ(start_all({{other, "echo late", "", {}}}).at(0).outcome, StartOutcome::exists);
  EXPECT_EQ(status(other).phase, Phase::none);
}

TEST_P(JobStart, AStarterThatDiedHalfWay) {
  // after mkdir
  const JobId bare = JobId::random();
  make_folders(folder(bare));
  EXPECT_EQ(status(bare).phase, Phase::starting);
  EXPECT_EQ(status(bare, true).phase, Phase::none);
  EXPECT_EQ(status(bare).phase, Phase::none);
  // with an empty supervisor file: its writer died
  const JobId empty = JobId::random();
  make_folders(folder(empty));
  std::ofstream(folder(empty) / "supervisor") << "";
  EXPECT_EQ(status(empty).phase, Phase::starting);
  EXPECT_EQ(status(empty, true).phase, Phase::none);
  EXPECT_EQ(status(empty).phase, Phase::none);
}

TEST_P(JobStart, AFullDiskIsAnError) {
  // a file where the folder should be: nothing can be written below it, not even by root
  make_folders(place());
  std::ofstream(place() / ".jobs") << "";
  EXPECT_THROW(start_all({{JobId::random(), "true", "", {}}}), servers::Refused);
}

TEST_P(JobStart, FoldersMayHaveAnyName) {
  const std::string project = "~/it's a \"dir\" $HOME é";
  const StartRequest request{JobId::random(), "pwd", "", {}};
  const RemoteFolder folder{project, ".my jobs"};
  EXPECT_EQ(ask_start(agent(), {.folder = folder, .requests = {request}}).at(0).outcome,
            StartOutcome::started);
  const fs::path place = servers.home("a") / project.substr(2);
  until([&] { return test::has_ended(place / ".my jobs" / request.id.text()); }, "the result");
  EXPECT_EQ(read_file(place / ".my jobs" / request.id.text() / "job.out"), place.string() + "\n");
  const StateAnswer answer = ask_state(agent(), {.folder = folder, .ids = {request.id}});
  EXPECT_EQ(result_of(answer.jobs.at(request.id)), ExitStatus::exited(0));
  EXPECT_GT(answer.jobs.at(request.id).out_size, 0U);
  EXPECT_EQ(ask_stop(agent(), {.folder = folder, .ids = {request.id}}).results.at(request.id).outcome,
            StopOutcome::ended);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobStart, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
