// A launch as a unit: `--launch` in every command about jobs, and one row and one sentence for all of its
// ranks.

#include <algorithm>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandLaunches : public ::testing::Test {
 protected:
  CommandLaunches() {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n"
        "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n");
  }
  // Launches with keys 1 to 4 and 5 to 6, and a separate job 7.
  void two_launches(const std::string& command) {
    launch(command, "2");
    launch(command, "1");
    world.job("a", "sleep 1000");
  }
  void launch(const std::string& command, const std::string& nproc) {
    const CommandResult result =
        world.run({"launch", "--cmd", command, "--nproc-per-node", nproc, "--tag", "t"});
    ASSERT_EQ(result.code, 0) << result;
  }
  std::vector<int> listed(std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "job-list"});
    std::vector<int> keys;
    for (const auto& job : world.run(words).json()) {
      keys.push_back(job.at("key").get<int>());
    }
    return keys;
  }
  CommandWorld world;
};

TEST_F(CommandLaunches, AreOneRowAndJobsStayOneRowEach) {
  two_launches("exec sleep 1000");
  EXPECT_THAT(
      world.run({"job-list"}).lines(),
      ElementsAre(MatchesRegex("KEY  STATE +SERVER  RANKS +STARTED +TIME  TAGS +COMMAND"),
                  MatchesRegex("1-4  running  a, b +4 running +[0-9]+s ago +[0-9]+s  t +exec sleep 1000"),
                  MatchesRegex("5-6  running  a, b +2 running .*"),
                  MatchesRegex("  7  running  a +[0-9]+s ago .* sleep 1000")));
  const auto ranks = world.run({"job-list", "--ranks", "--launch", "2"}).lines();
  ASSERT_EQ(ranks.size(), 5U);
  EXPECT_THAT(ranks[0], MatchesRegex("KEY  STATE +SERVER  RANK .*"));
  EXPECT_THAT(ranks[3], MatchesRegex("  3  running  b +2 .*"));
  EXPECT_THAT(listed({}), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  const auto json = world.run({"--json", "job-list"}).json();
  const std::string id = json[4]["launch"].get<std::string>().substr(0, 8);
  EXPECT_THAT(world.run({"job-list", "--ids"}).lines()[2], StartsWith("5-6  " + id + "  running"));
  EXPECT_THAT(world.run({"job-list", "--ids", "--ranks"}).lines()[5],
              StartsWith("  5  " + json[4]["id"].get<std::string>().substr(0, 8) + "  running"));
  EXPECT_THAT(listed({"--launch", id}), ElementsAre(5, 6));
}

TEST_F(CommandLaunches, TheRowSaysWhatIsWrongWhileOthersRun) {
  ASSERT_EQ(world
                .run({"launch", "--cmd", "[ $RANK != 2 ] || exit 3; exec sleep 1000", "--nproc-per-node", "2",
                      "--on-failure", "leave"})
                .code,
            0);
  world.run({"job-wait", "3"});
  EXPECT_THAT(world.run({"job-list"}).lines()[1],
              MatchesRegex("1-4  running; rank 2 failed exit 3  a, b +3 running, 1 ended .*"));
  // Clocks are compared with a tolerance: a failure right before a kill may be its consequence.
  const ExactInstant failed_at = world.stored(3).failed_at.value();
  until([&] { return now_milliseconds() > failed_at + std::chrono::milliseconds(250); },
        "the failure to be older than the tolerance");
  EXPECT_EQ(world.run({"job-kill", "--launch", "1"}).code, 0);
  EXPECT_THAT(world.run({"job-list", "--launch", "1"}).lines()[1],
              MatchesRegex("1-4  rank 2 failed exit 3  a, b +4 ended .*"));
}

TEST_F(CommandLaunches, AreNamedByAnyOfTheirJobs) {
  two_launches("echo out $RANK of $WORLD_SIZE; exec sleep 1000");
  const std::string id = world.stored(3).id.text();
  for (const std::string& name : {std::string("1"), std::string("4"), std::string("1-4"), id,
                                  world.stored(1).launch->text().substr(0, 8)}) {
    EXPECT_THAT(listed({"--launch", name}), ElementsAre(1, 2, 3, 4)) << name;
  }
  EXPECT_THAT(listed({"--launch", "last"}), ElementsAre(5, 6));
  EXPECT_THAT(listed({"--launch", "last", "--launch", "1"}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(world.run({"job-list", "--launch", "7"}),
              Refused("no launch '7': job 7 is not part of a launch\n hint: name it with --job 7\n"));
  EXPECT_THAT(world.run({"job-kill", "--launch", "9"}), Refused("no launch '9': no job has this key"));
  EXPECT_THAT(world.run({"job-kill", "4-5"}), Refused("no launch '4-5': these are jobs of two launches"));
  EXPECT_THAT(world.run({"job-wait", "--launch", "last", "--tag", "x"}),
              Refused("no launch 'last': no launch has the tags x"));
}

TEST_F(CommandLaunches, EveryCommandTakesThem) {
  two_launches("echo out $RANK of $WORLD_SIZE; exec sleep 1000");
  const auto shows = [&](const std::vector<std::string>& words, const std::string& wanted) {
    const auto following = world.start(words);
    until([&] { return following->out().size() >= wanted.size(); }, "the output");
    following->interrupt();
    return following->wait().out;
  };
  EXPECT_EQ(shows({"job-tail", "--launch", "4"}, "out 0 of 4\n"), "out 0 of 4\n");
  EXPECT_EQ(shows({"job-tail", "--launch", "last"}, "out 0 of 2\n"), "out 0 of 2\n");
  EXPECT_THAT(shows({"job-tail", "--launch", "6", "--all"}, "[0] out 0 of 2\n[1] out 1 of 2\n"),
              AllOf(HasSubstr("[0] out 0 of 2\n"), HasSubstr("[1] out 1 of 2\n")));
  EXPECT_THAT(world.run({"job-rsync", "--launch", "5"}),
              Ends(0, "", "the output of 2 jobs is in .remote/jobs\n"));
  EXPECT_TRUE(fs::exists(world.brought(world.stored(6), "job.out")));
  EXPECT_FALSE(fs::exists(world.brought(world.stored(1), "job.out")));
  EXPECT_THAT(world.run({"job-stacks", "--launch", "5"}).out,
              StartsWith("ranks 0-1 (a, b): no Python stack: "));
  write_file_atomic(world.there("a") / "result", "of rank 0\n");
  const fs::path to = world.home() / "to";
  EXPECT_EQ(world.run({"job-pull", "--launch", "4", "--to", to.string(), "result"}).code, 0);
  EXPECT_EQ(read_file(to / "result"), "of rank 0\n");
  EXPECT_THAT(world.run({"job-clean", "--launch", "1", "--yes"}),
              Ends(1, "", "warning: jobs 1-4 (ranks 0-3 on a, b): not removed: running\nno jobs removed\n"));
  EXPECT_THAT(world.run({"job-kill", "--launch", "2"}),
              Ends(0, "jobs 1-4 (ranks 0-3 on a, b): killed\n",
                   "ending 4 jobs; processes still running after 10 s are killed\n"));
  EXPECT_THAT(listed({}), ElementsAre(5, 6, 7));
  EXPECT_THAT(world.run({"job-wait", "--launch", "3"}),
              Ends(1, "", MatchesRegex("killed SIGTERM by .*@.*: 3 others were killed\n")));
  EXPECT_THAT(world.run({"job-clean", "--launch", "1", "--yes"}), Ends(0, "", "4 jobs removed\n"));
  EXPECT_THAT(listed({"--stopped"}), ElementsAre(5, 6, 7));
}

TEST_F(CommandLaunches, EndInOneSentence) {
  launch("[ $RANK != 3 ] || exit 3", "2");
  launch("true", "2");
  const CommandResult both = world.run({"job-wait", "--tag", "t"});
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.err, HasSubstr("job 4 (rank 3 on b): failed exit 3\n"));
  EXPECT_THAT(both.err, HasSubstr("\njobs 1-4 (ranks 0-3 on a, b): rank 3 failed exit 3; "));
  EXPECT_THAT(both.err, HasSubstr("jobs 5-8 (ranks 0-3 on a, b): succeeded\n"));
  EXPECT_EQ(std::ranges::count(both.err, '\n'), 4) << both;
  EXPECT_THAT(world.run({"job-wait", "--launch", "5"}), Ends(0, "", "all 4 ranks succeeded\n"));
  EXPECT_THAT(world.run({"job-tail", "--launch", "5", "--all"}), Ends(0, "", "all 4 ranks succeeded\n"));
  EXPECT_THAT(world.run({"job-clean", "--color", "never"}, screen("n\n")).err,
              StartsWith("  jobs 1-4 (ranks 0-3 on a, b): rank 3 failed exit 3: [ $RANK != 3 ] || exit 3\n"
                         "  jobs 5-8 (ranks 0-3 on a, b): succeeded: true\nRemove 8 ended jobs"));
}

TEST_F(CommandLaunches, AnUnknownColumnIsRefusedWithThoseThereAre) {
  EXPECT_THAT(world.run({"history", "--columns", "nosuch"}), Ends(0, "", "no launches on record\n"));
  launch("echo loss 0.25", "1");
  ASSERT_EQ(world.run({"job-wait", "--launch", "1"}).code, 0);
  ASSERT_TRUE(eventually([&] { return world.run({"history"}).out.find("LOSS") != std::string::npos; }));
  EXPECT_EQ(world.run({"history", "--columns", "Loss,servers", "--sort", "LOSS"}).code, 0);
  EXPECT_THAT(world.run({"history", "--columns", "loss,nosuch"}),
              Refused("'nosuch'\n hint: there are commit, servers, ranks, tags, note, loss\n"));
  EXPECT_THAT(world.run({"history", "--sort", "servers"}), Refused("'servers'\n hint: there are loss\n"));
}

TEST_F(CommandLaunches, AfterJobCleanItIsSaidThatTheJobsWereRemoved) {
  ASSERT_EQ(world.run({"launch", "--name", "base", "--follow", "--cmd", "true"}).code, 0);
  ASSERT_EQ(world.run({"job-clean", "--yes"}).code, 0);
  for (const char* command : {"report", "job-tail", "job-wait", "job-kill", "job-stacks"}) {
    for (const char* name : {"base", "1", "2"}) {
      EXPECT_THAT(world.run({command, name}),
                  Refused("they were removed by job-clean, and their output with them\n hint: its record is "
                          "still here; see: remote history\n"))
          << command << " " << name;
    }
  }
  EXPECT_EQ(world.run({"show", "base"}).code, 0);
  EXPECT_THAT(world.run({"job-tail", "other"}), Refused("there are no jobs"));
  world.job("a", "exec sleep 1000");
  EXPECT_THAT(world.run({"report", "base"}), Refused("they were removed"));
}

TEST_F(CommandLaunches, AResultIsPulledAlsoAfterJobClean) {
  world.configure(read_file(world.project() / ".remote/configs.yaml") + "outputs: [out.txt]\n");
  make_folders(world.there("a"));
  ASSERT_EQ(world.run({"launch", "--server", "a", "--follow", "--cmd", "echo one >out.txt"}).code, 0);
  ASSERT_EQ(world.run({"job-clean", "--yes"}).code, 0);
  const CommandResult pulled = world.run({"pull", "1"});
  EXPECT_EQ(pulled.code, 0) << pulled;
  EXPECT_EQ(read_file_if_there(world.project() / "results/1/out.txt"), "one\n");
  // Files written by a later launch do not belong to this one.
  fs::last_write_time(world.there("a") / "out.txt", fs::file_time_type::clock::now() + std::chrono::hours(1));
  fs::remove_all(world.project() / "results");
  EXPECT_EQ(world.run({"pull", "1"}).code, 0);
  EXPECT_FALSE(fs::exists(world.project() / "results/1/out.txt"));
  for (const auto& entry : fs::directory_iterator(world.there("a") / ".jobs")) {
    EXPECT_THAT(entry.path().filename().string(), Not(StartsWith(".results")));
  }
}

TEST_F(CommandLaunches, AReportTakesSeveralKeys) {
  launch("echo loss 1", "1");
  launch("echo loss 2", "1");
  ASSERT_EQ(world.run({"job-wait", "--tag", "t"}).code, 0);
  const CommandResult both = world.run({"report", "1", "3", "--json"});
  EXPECT_EQ(both.code, 0) << both;
  EXPECT_EQ(both.json().at("launches").size(), 2U);
  EXPECT_EQ(world.run({"report", "1", "2", "--json"}).json().contains("launches"), false) << "one launch";
  world.ended_job("a", "true");
  EXPECT_THAT(world.run({"report", "1", "5"}), Refused("5"));
}

TEST_F(CommandLaunches, AnInterruptOfAReportOfSeveralKeysSaysThatThereIsNoPage) {
  launch("exec sleep 1000", "1");
  launch("exec sleep 1000", "1");
  write_file_atomic(world.servers().bin() / "hang", "");
  const int before = world.servers().commands();
  const auto running = world.start({"report", "1", "3", "--out", (world.home() / "page.html").string()});
  until([&] { return world.servers().commands() > before; }, "a question to a server");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130) << result;
  EXPECT_THAT(result.err,
              ::testing::EndsWith("interrupted: no page was written; nothing changes on the servers\n"));
  EXPECT_FALSE(fs::exists(world.home() / "page.html"));
  fs::remove(world.servers().bin() / "hang");
}

TEST_F(CommandLaunches, DiffOfANameAndItsRerunComparesTheTwo) {
  ASSERT_EQ(world.run({"launch", "--name", "base", "--follow", "--cmd", "true"}).code, 0);
  EXPECT_THAT(world.run({"diff", "base", "last"}), Refused("'base' and 'last' are the same launch, 1"));
  EXPECT_THAT(world.run({"diff", "1", "2"}), Refused("are the same launch"));
  ASSERT_EQ(world.run({"rerun", "base", "--code", "now", "--yes", "--follow", "--env", "A", "b"}).code, 0);
  const auto keys = [&](const char* from, const char* to) {
    const auto diff = world.run({"diff", from, to, "--json"}).json();
    return std::pair(diff["from"]["key"].get<int>(), diff["to"]["key"].get<int>());
  };
  EXPECT_EQ(keys("base", "last"), std::pair(1, 3));
  EXPECT_EQ(keys("last", "base"), std::pair(3, 1));
  EXPECT_EQ(keys("base", "base"), std::pair(1, 3));
  EXPECT_EQ(keys("1", "base"), std::pair(1, 3));
  EXPECT_THAT(world.run({"diff", "last", "last"}), Refused("are the same launch, 3"));
}

TEST_F(CommandLaunches, CompletionOffersWhatRunsFirstAndNoOtherRanks) {
  ASSERT_EQ(
      world.run({"launch", "--name", "base", "--nproc-per-node", "2", "--follow", "--cmd", "true"}).code, 0);
  launch("exec sleep 1000", "2");
  world.ended_job("a", "true");
  const auto offered = [&](const std::vector<std::string>& words) {
    std::vector<std::string> line = {"__complete", "line"};
    line.insert(line.end(), words.begin(), words.end());
    std::vector<std::string> found;
    for (const std::string& one : world.run(line).lines()) {
      found.push_back(one.substr(0, one.find('\t')));
    }
    return found;
  };
  EXPECT_THAT(offered({"job-tail", ""}), ElementsAre(":words", "5", "9", "1", "base", "last"));
  EXPECT_THAT(offered({"job-tail", "7"}), ElementsAre(":words", "7"));
  EXPECT_THAT(offered({"job-kill", "--launch", ""}), ElementsAre(":words", "5", "1", "base", "last"));
  EXPECT_THAT(offered({"help", "debug"}), ElementsAre(":words", "debugging"));
  EXPECT_THAT(offered({"torch-launch", "--", "tr"}), ElementsAre(":files"));
}

TEST_F(CommandLaunches, AnUnknownNameIsRefusedWithTheNearOne) {
  ASSERT_EQ(world.run({"launch", "--name", "small-run", "--cmd", "true"}).code, 0);
  EXPECT_THAT(world.run({"rerun", "smal-run"}), Refused("hint: did you mean 'small-run'?\n"));
  EXPECT_THAT(world.run({"rerun", "other"}), Refused("hint: the last one is 1; see: remote history\n"));
}

TEST_F(CommandLaunches, ADryRunOfAnotherRunStartsNothing) {
  launch("exec sleep 1000", "1");
  const CommandResult dry = world.run({"rerun", "1", "--dry-run", "--env", "A", "b"});
  EXPECT_EQ(dry.code, 0) << dry;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("2 ranks on 2 servers"), HasSubstr("\n  A=b\n"),
                             HasSubstr("rank 1 (local 0): exec sleep 1000\n")));
  EXPECT_THAT(listed({}), ElementsAre(1, 2));
}

}  // namespace
}  // namespace remote::test
