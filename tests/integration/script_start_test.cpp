#include <gmock/gmock.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "support/processes.hpp"
#include "support/program_as.hpp"
#include "support/script_test.hpp"

// How start.sh starts jobs, under every sh that servers have.

namespace remote::jobs {
namespace {

class JobStart : public test::ScriptTest {};

TEST_P(JobStart, StartsRunsAndEnds) {
  const JobId id = start("echo out; echo err >&2; pwd; exit 3");
  const StatusReply reply = wait_end(id);
  EXPECT_EQ(reply.phase, Phase::ended);
  EXPECT_EQ(reply.result(), ExitStatus::exited(3));
  EXPECT_TRUE(reply.started_at);
  EXPECT_TRUE(reply.end->at);
  EXPECT_EQ(file(id, "job.out"), "out\n" + (place()).string() + "\n");
  EXPECT_EQ(file(id, "job.err"), "err\n");
  EXPECT_EQ(reply.out_size, file(id, "job.out").size());
  EXPECT_EQ(reply.err_size, 4U);
  EXPECT_FALSE(reply.oom);
  EXPECT_FALSE(reply.stop_signal);
  const auto permissions = fs::status(folder(id) / "job.sh").permissions();
  EXPECT_EQ(permissions & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
  expect_nothing_left();
}

TEST_P(JobStart, StartsOnce) {
  const JobId id = JobId::random();
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

// glibc's posix_spawn(3), which starts the pretended server, ignores its two private signals in every child.
std::string without_private_signals(std::string status) {
  const std::string ignored = "SigIgn:\t0000000180";
  if (const std::size_t at = status.find(ignored); at != std::string::npos) {
    status.replace(at, ignored.size(), "SigIgn:\t0000000000");
  }
  return status;
}

TEST_P(JobStart, IgnoredSignalsAreNotHandedOn) {
  const StartRequest request{JobId::random(), "cat /proc/self/status", "", {}};
  const ssh::ExecRequest exec_request = test::program_as("trap '' HUP INT TERM USR1; exec",
                                                         start_action(jobs_folder, {request}).script.input());
  EXPECT_EQ(read_answer<StartAnswer>(test::program_output(*connection, exec_request)).jobs.at(0).outcome,
            StartReply::Outcome::started);
  EXPECT_EQ(wait_end(request.id).result(), ExitStatus::exited(0));
  if (GetParam() != test::ServerShell::busybox) {  // whose env cannot
    EXPECT_THAT(without_private_signals(file(request.id, "job.out")),
                ::testing::HasSubstr("SigIgn:\t0000000000000000\n"));
  }
}

TEST_P(JobStart, StartsAllRanksInOneExec) {
  std::vector<StartRequest> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back({JobId::random(), "echo rank $RANK", "", {{"RANK", std::to_string(i)}}});
  }
  const auto replies = start_all(requests);
  ASSERT_EQ(replies.size(), 8U);
  EXPECT_EQ(servers.commands(), 1);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(replies[i].outcome, StartReply::Outcome::started) << replies[i].reason;
    EXPECT_TRUE(replies[i].pid);
    EXPECT_EQ(wait_end(requests[i].id).result(), ExitStatus::exited(0));
    EXPECT_EQ(file(requests[i].id, "job.out"), "rank " + std::to_string(i) + "\n");
  }
}

TEST_P(JobStart, ValuesArriveExactly) {
  const std::string value = "a b  'q' \"d\" $HOME `id` \\n \\ %s\nline two\n\ttab é 漢 🎉 * ? ~ # ! \x01\x7f";
  const JobId id = start("printf %s \"$VALUE\"; printf '|%s|%s|%s' \"$EMPTY\" \"$HOME\" \"it's\"",
                         {{"VALUE", value}, {"EMPTY", ""}, {"HOME", "/else where"}});
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(0));
  EXPECT_EQ(file(id, "job.out"), value + "||/else where|it's");
}

TEST_P(JobStart, ActivationComesFirst) {
  const JobId id =
      start("echo \"$VIA\"; tool", {}, "VIA='it''s set'; export VIA\ntool() { :; }\nPATH=$PWD/venv:$PATH");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(127));
  EXPECT_EQ(file(id, "job.out"), "its set\n");
  for (const char* bad : {"false", "if then (", ". ./none/bin/activate"}) {
    const JobId failing = start("echo never", {}, bad);
    const StatusReply reply = wait_end(failing);
    ASSERT_TRUE(reply.end) << bad;
    EXPECT_FALSE(reply.end->status.success()) << bad;
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
  EXPECT_EQ(wait_end(id).result(), ExitStatus::signalled(SIGKILL));
}

TEST_P(JobStart, AJobThatKillsItsProcessGroupHasAResult) {
  EXPECT_EQ(wait_end(start("kill -9 0; sleep 10")).result(), ExitStatus::signalled(SIGKILL));
}

TEST_P(JobStart, TheJobHasDefaultSignalsAndUmaskAndNoForeignFile) {
  const JobId id = start("cat /proc/self/status; umask; readlink /proc/$$/fd/0; echo /proc/$$/fd/[4-9]");
  EXPECT_EQ(wait_end(id).result(), ExitStatus::exited(0));
  const std::string out = without_private_signals(file(id, "job.out"));
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

TEST_P(JobStart, AClaimedIdNeverStarts) {
  make_folders(place());
  const JobId id = JobId::random();
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_FALSE(fs::exists(folder(id)));
  EXPECT_EQ(status(id, true).phase, Phase::none);
  const auto reply = start_all({{id, "echo late", "", {}}}).at(0);
  EXPECT_EQ(reply.outcome, StartReply::Outcome::exists);
  EXPECT_EQ(status(id).phase, Phase::none);
  EXPECT_EQ(file(id, "job.out"), "");
  // a kill of what is not there claims as well
  const JobId other = JobId::random();
  EXPECT_EQ(kill(other).outcome, KillReply::Outcome::none);
  EXPECT_EQ(start_all({{other, "echo late", "", {}}}).at(0).outcome, StartReply::Outcome::exists);
  EXPECT_EQ(status(other).phase, Phase::none);
}

TEST_P(JobStart, AStarterThatDiedHalfWay) {
  // after mkdir
  const JobId bare = JobId::random();
  make_folders(folder(bare));
  EXPECT_EQ(status(bare).phase, Phase::starting);
  EXPECT_EQ(status(bare, true).phase, Phase::none);
  EXPECT_EQ(status(bare).phase, Phase::none);
  // with an empty supervisor file: its writer died in between
  const JobId empty = JobId::random();
  make_folders(folder(empty));
  std::ofstream(folder(empty) / "supervisor") << "";
  EXPECT_EQ(status(empty).phase, Phase::starting);
  EXPECT_EQ(status(empty, true).phase, Phase::none);
  EXPECT_EQ(status(empty).phase, Phase::none);
}

TEST_P(JobStart, AFullDiskIsAnError) {
  // a file where the folder should be: nothing can be written below it, by root neither
  make_folders(place());
  std::ofstream(place() / ".jobs") << "";
  EXPECT_THROW(run(start_action(jobs_folder, {{JobId::random(), "true", "", {}}})), Error);
}

TEST_P(JobStart, FoldersMayHaveAnyName) {
  const std::string project = "~/it's a \"dir\" $HOME é";
  const StartRequest request{JobId::random(), "pwd", "", {}};
  EXPECT_EQ(run(start_action({project, ".my jobs"}, {request})).jobs.at(0).outcome,
            StartReply::Outcome::started);
  const fs::path place = servers.home("a") / project.substr(2);
  until([&] { return fs::exists(place / ".my jobs" / request.id.text() / "result"); }, "the result");
  EXPECT_EQ(read_file(place / ".my jobs" / request.id.text() / "job.out"), place.string() + "\n");
  const auto answer = run(status_action({project, ".my jobs"}, {request.id}, {}));
  EXPECT_EQ(answer.jobs.at(0).result(), ExitStatus::exited(0));
  EXPECT_GT(answer.jobs.at(0).out_size, 0U);
  EXPECT_EQ(run(kill_action({project, ".my jobs"}, {request.id}, {15, 0, ""})).jobs.at(0).outcome,
            KillReply::Outcome::ended);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobStart, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
