// `remote job-run`.

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>

#include "base/shell_quote.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

TEST(CommandJobRun, SaysTheKeyAndHowToFollow) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "sleep 1000"}),
              Ends(0, "job 1 started on a\n", "follow it with: remote job-tail --job 1\n"));
  EXPECT_THAT(world.run({"--quiet", "job-run", "--server", "b", "--cmd", "sleep 1000"}),
              Ends(0, "job 2 started on b\n", ""));
}

TEST(CommandJobRun, JsonIsTheJobWithAllFieldsOfTheContract) {
  CommandWorld world;
  const CommandResult result = world.run(
      {"--json", "job-run", "--server", "a", "--tag", "one", "--tag", "two words", "--cmd", "sleep 1000"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  const auto job = result.json();
  EXPECT_EQ(job["key"], 1);
  EXPECT_EQ(job["server"], "a");
  EXPECT_EQ(job["state"], "running");
  EXPECT_EQ(job["tags"], nlohmann::json({"one", "two words"}));
  EXPECT_EQ(job["command"], "sleep 1000");
  EXPECT_TRUE(job["pid"].is_number());
  EXPECT_EQ(job["id"].get<std::string>().size(), 32U);
  for (const char* name : {"exit_code", "signal", "launch", "rank", "world_size", "ended_at"}) {
    ASSERT_TRUE(job.contains(name)) << name;
    EXPECT_TRUE(job[name].is_null()) << name;
  }
  for (const char* name : {"created_at", "started_at", "checked_at"}) {
    EXPECT_THAT(job[name].get<std::string>(), ::testing::MatchesRegex("....-..-..T..:..:..Z")) << name;
  }
}

TEST(CommandJobRun, RunsInTheProjectsFolderWithTheVariablesGiven) {
  CommandWorld world;
  const auto job = world.ended_job("a", "pwd; echo \"$FIRST|$SECOND\"",
                                   {"--env", "FIRST", "$HOME [x]", "-e", "SECOND=a=b"});
  EXPECT_EQ(job.state, JobState::succeeded);
  EXPECT_THAT(world.run({"--quiet", "job-tail", "--job", "1"}),
              Ends(0, world.there("a").string() + "\n$HOME [x]|a=b\n", ""));
}

TEST(CommandJobRun, FollowShowsTheOutputAndEndsAsTheJob) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--follow", "--cmd", "echo out; echo err >&2; exit 3"}),
              Ends(3, "job 1 started on a\nout\n", "err\njob 1 on a: failed exit 3\n"));
  EXPECT_THAT(world.run({"--quiet", "job-run", "--server", "a", "--follow", "--cmd", "true"}),
              Ends(0, "job 2 started on a\n", ""));
}

TEST(CommandJobRun, TheEndOfAFailedJobHasTheRemedyForItsLastLines) {
  CommandWorld world;
  const std::string command = "echo \"KeyError: 'RANK'\" >&2; exit 1";
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--follow", "--cmd", command}).err,
              EndsWith("job 1 on a: failed exit 1\n hint: `remote torch-launch` sets that variable for each "
                       "rank: remote torch-launch -- train.py\n"));
  EXPECT_THAT(world.run({"job-tail", "--job", "1"}).err, HasSubstr("hint: `remote torch-launch` sets"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--follow", "--cmd", "echo \"KeyError: 'RANK'\""}).err,
              Not(HasSubstr("hint")));
}

// As with exFAT and FUSE file systems.
TEST(CommandJobRun, ADiskThatRefusesModesHasAHint) {
  CommandWorld world;
  world.ended_job("a", "true");
  fs::remove_all(world.there("a") / ".jobs/.bin");
  const fs::path filter = world.servers().home("a") / "refuse.py";
  write_file_atomic(filter, R"(import ctypes, os, struct, sys
load, equal, end = 0x20, 0x15, 0x06
code = struct.pack("HBBI", load, 0, 0, 0)
for call in sys.argv[1].split(","):
    code += struct.pack("HBBI", equal, 0, 1, int(call)) + struct.pack("HBBI", end, 0, 0, 0x00050001)
code = ctypes.create_string_buffer(code + struct.pack("HBBI", end, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit("system calls cannot be filtered here")
os.execv("/bin/dash", ["sh"] + sys.argv[2:])
)");
  constexpr int fchmodat2 = 452;
  std::vector<int> calls{SYS_fchmod, SYS_fchmodat, fchmodat2};
#ifdef SYS_chmod
  calls.push_back(SYS_chmod);
#endif
  world.servers().add_program("sh", fmt::format("exec /usr/bin/python3 {} {} \"$@\"\n",
                                                shell_quote(filter.string()), fmt::join(calls, ",")));
  const CommandResult result = world.run({"job-run", "--server", "a", "--cmd", "true"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("was not started: cannot write in "),
                    HasSubstr("/.jobs: Operation not permitted\n hint: the file system of the "
                              "project's folder there lacks modes, links or locks: choose another "
                              "remote_path\n")));
}

TEST(CommandJobRun, AScriptWithoutPythonIsWarnedOf) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--", "train.py"}),
              Ends(0, "job 1 started on a\n", HasSubstr("warning: there is no train.py here")));
  write_file_atomic(world.project() / "train.py", "");
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--", "train.py"}),
              Ends(0, "job 2 started on a\n",
                   HasSubstr("warning: no shell finds a Python script by its name alone")));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--", "nice", "-n", "5", "train.py"}).err,
              HasSubstr("write -- nice -n 5 python train.py"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--", "./train.py"}).err, Not(HasSubstr("Python")));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "train.py"}).err,
              HasSubstr("warning: no shell finds a Python script by its name alone"));
}

TEST(CommandJobRun, AScriptThatIsNowhereIsNotStarted) {
  CommandWorld world;
  make_folders(world.project() / "sub");
  write_file_atomic(world.project() / "sub/train.py", "");
  for (const char* line : {"python3 trian.py", "cd sub && python3 trian.py", "cd sub; ./trian.py"}) {
    EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", line}),
                AllOf(Refused("trian.py, here or on a"), Refused("--no-check")))
        << line;
  }
  EXPECT_THAT(world.store().list().jobs, ::testing::IsEmpty());
  EXPECT_EQ(world.run({"job-run", "--server", "a", "--no-check", "--cmd", "python3 trian.py"}).code, 0);
  EXPECT_EQ(world.run({"job-run", "--server", "a", "--cmd", "cd sub && python3 train.py"}).code, 0);
}

TEST(CommandJobRun, AnInterruptEndsTheFollowingAndNotTheJob) {
  CommandWorld world;
  const auto running = world.start({"job-run", "--server", "a", "--follow", "--cmd", "echo up; sleep 1000"});
  until([&] { return running->out().find("up") != std::string::npos; }, "the job's first words");
  running->interrupt();
  EXPECT_THAT(running->wait(),
              Ends(130, "job 1 started on a\nup\n",
                   "stopped following; the job keeps running. To end it: remote job-kill --job 1\n"));
  EXPECT_EQ(world.run({"--json", "job-list"}).json()[0]["state"], "running");
}

TEST(CommandJobRun, WrongOptionsAreRefusedAndNothingIsRecorded) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-run", "--server", "a"}), Refused("remote job-run: --cmd is required"));
  EXPECT_THAT(world.run({"job-run", "--cmd", "true"}), Refused("remote job-run: --server is required"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", " \n"}), Refused("job-run: --cmd is empty"));
  EXPECT_THAT(world.run({"job-run", "--server", "*", "--cmd", "true"}),
              Refused("'*' names more than one server\n hint: a job runs on one server; name it in full"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "true", "-e", "X"}),
              Refused("-e X: there is no such variable here, and no '=' in it"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--env", "X", "--", "true"}),
              Refused("--env X: it has no value: '--' ends the options"));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandJobRun, AServerThatIsNotReachedIsAnErrorAndNothingIsRecorded) {
  CommandWorld world;
  world.cut_off({"a"});
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "true"}),
              Ends(1, "", AllOf(HasSubstr("error: a: "), HasSubstr("injected fault"))));
  EXPECT_THAT(world.run({"--json", "job-run", "--server", "a", "--cmd", "true"}),
              Ends(1, "", HasSubstr("error: a: ")));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
}

TEST(CommandJobRun, WhenTheAnswerIsLostTheJobIsFoundAgain) {
  CommandWorld world;
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--cmd", "true"}).code, 0);  // installs the program
  const int first = world.servers().commands();
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--cmd", "true"}).code, 0);
  const int for_one = world.servers().commands() - first;  // the start is the last of them
  world.servers().set_faults({.after = world.servers().commands() + for_one});
  const CommandResult result = world.run({"--json", "job-run", "--server", "a", "--cmd", "sleep 1000"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("error: a: "));
  world.servers().set_faults({});
  EXPECT_EQ(world.run({"--json", "job-list"}).json().back()["state"], "running");
}

}  // namespace
}  // namespace remote::test
