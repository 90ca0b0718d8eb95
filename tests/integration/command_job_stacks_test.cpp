// `remote job-stacks`.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

TEST(CommandJobStacks, WithoutARunningJobIsWrongUsage) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-stacks"}),
              Refused("job-stacks: no job runs\n hint: see: remote job-list --stopped"));
  world.ended_job("a", "true", {"--tag", "x"});
  EXPECT_THAT(world.run({"job-stacks", "--job", "1"}), Refused("job-stacks: none of these jobs is running"));
  EXPECT_THAT(world.run({"job-stacks", "--tag", "x"}), Refused("job-stacks: none of these jobs is running"));
  EXPECT_THAT(world.run({"job-stacks", "--job", "2"}), Refused("no job '2'"));
}

TEST(CommandJobStacks, AProgramThatIsNotPythonHasNoneAndThatIsAFailure) {
  CommandWorld world;
  const auto job = world.job("a", "sleep 1000");
  const CommandResult result = world.run({"job-stacks"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.out, MatchesRegex("job 1 \\(a, job 1, pid [0-9]+\\): no Python stack: .*\n(.*\n)*"));
  EXPECT_THAT(result.err, Not(HasSubstr("Python"))) << "advice that is of no use";
  const CommandResult json = world.run({"job-stacks", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json()["groups"], nlohmann::json::array());
  const auto one = json.json()["without"].at(0);
  EXPECT_EQ(one["job"], 1);
  EXPECT_EQ(one["id"], job.id.text());
  EXPECT_EQ(one["server"], "a");
  EXPECT_EQ(one["rank"], nullptr);
  EXPECT_FALSE(one["reason"].get<std::string>().empty());
}

TEST(CommandJobStacks, APythonProgramWithoutStacksGetsAdvice) {
  CommandWorld world;
  world.job("a", "exec /usr/bin/python3 -c 'import time; time.sleep(1000)'");
  until(
      [&] {
        const CommandResult result = world.run({"job-stacks"});
        return result.code == 1 && result.err.find("start the run with --enable-stacks") != std::string::npos;
      },
      "the advice");
}

TEST(CommandJobStacks, EqualOnesAreShownTogether) {
  CommandWorld world;
  write_file_atomic(world.there("a") / "train.py",
                    "import time\ndef step():\n    time.sleep(1000)\nstep()\n");
  world.job("a", "exec /usr/bin/python3 train.py", {"--enable-stacks", "--tag", "x"});
  world.job("a", "exec /usr/bin/python3 train.py", {"--enable-stacks", "--tag", "x"});
  CommandResult result;
  until(
      [&] {
        result = world.run({"job-stacks", "--tag", "x"});
        return result.code == 0 && result.out.starts_with("jobs 1-2 (a):\n");
      },
      "the stacks");
  EXPECT_THAT(result.out, MatchesRegex("jobs 1-2 \\(a\\):\n  step \\(.*/proj/train.py:3\\)\n(.*\n)*"));
  EXPECT_EQ(result.err, "");
  const CommandResult threads = world.run({"job-stacks", "--tag", "x", "--threads", "--json"});
  EXPECT_EQ(threads.code, 0);
  const auto group = threads.json()["groups"].at(0);
  EXPECT_EQ(group["members"].size(), 2U);
  EXPECT_FALSE(group["threads"].at(0)["frames"].empty());
  EXPECT_EQ(threads.json()["without"], nlohmann::json::array());
  const CommandResult newest = world.run({"job-stacks"});  // no launch is running: only the newest job
  EXPECT_THAT(newest.out, StartsWith("job 2 (a, job 2, pid "));
}

TEST(CommandJobStacks, ARankThatIsMissingIsNamed) {
  CommandWorld world;
  ASSERT_EQ(world
                .run({"launch", "--nproc-per-node", "2", "--on-failure", "leave", "--no-check", "--no-follow",
                      "--cmd", "[ $RANK != 2 ] || exit 7; exec sleep 1000"})
                .code,
            0);
  until([&] { return world.stored(3).state == JobState::failed || (world.run({"job-list"}), false); },
        "rank 2 has ended");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"job-stacks"}, {"job-stacks", "--launch", "1"}}) {
    EXPECT_THAT(world.run(words).err, HasSubstr("rank 2 on b has ended (exit 7)"));
  }
  EXPECT_THAT(world.run({"job-stacks", "--job", "1"}).err, Not(HasSubstr("rank 2")));
  const auto absent = world.run({"job-stacks", "--json"}).json()["absent"];
  ASSERT_EQ(absent.size(), 1U);
  EXPECT_EQ(absent[0]["rank"], 2);
  world.cut_off({"b"});
  const CommandResult cut = world.run({"job-stacks"});
  EXPECT_EQ(cut.code, 1);
  EXPECT_THAT(cut.err, HasSubstr("rank 3 on b is unknown, because the server was not reached"));
  EXPECT_THAT(cut.err, HasSubstr("rank 2 on b has ended (exit 7)"));
}

TEST(CommandJobStacks, AServerThatIsNotReachedIsAFailure) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.cut_off({"a"});
  EXPECT_THAT(world.run({"job-stacks"}), Ends(1, "", StartsWith("warning: a: ")));
}

}  // namespace
}  // namespace remote::test
