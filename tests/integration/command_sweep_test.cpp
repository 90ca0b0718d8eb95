// `remote sweep` with simulated servers: the order of points, retries, stopping all, resuming, results.

#include <algorithm>
#include <map>
#include <set>

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandSweep : public ::testing::Test {
 protected:
  CommandSweep() {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n"
        "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n");
  }
  nlohmann::json points() { return world.run({"--json", "sweep", "--results", "last"}).json().at("points"); }
  std::size_t in_state(const std::string& state) {
    const auto all = points();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const auto& job) { return job.at("state") == state; }));
  }
  CommandWorld world;
};

TEST_F(CommandSweep, AScriptThatIsNowhereIsNotStarted) {
  const std::vector<std::string> words{"sweep", "--param", "lr=1,2", "--", "python3", "trian.py", "{lr}"};
  EXPECT_THAT(world.run(words),
              AllOf(Refused("there is no trian.py, here or on a, b"), Refused("--no-check")));
  EXPECT_THAT(world.store().list().jobs, ::testing::IsEmpty());
}

TEST_F(CommandSweep, PointsRunInTurnAndOneThatFailedRunsAgain) {
  const fs::path ran = world.home() / "ran";
  write_file_atomic(world.project() / "train.py", "");
  const CommandResult begun = world.run(
      {"sweep", "--param", "lr=1,2", "--param", "seed=0..2", "--retry", "1", "--tag", "grid", "--", "sh",
       "-c", "echo $0 >>" + ran.string() + "; echo loss 0.$SWEEP_LR$SWEEP_SEED; [ $0 != 2/1 ] || exit 3",
       "{lr}/{seed}"});
  EXPECT_THAT(begun, Ends(0, "sweep 1-6 started: 6 points on a, b\n",
                          AllOf(HasSubstr("remote sweep --results 1"),
                                HasSubstr("nothing was sent from here to a, b"))));
  EXPECT_EQ(world.run({"job-wait", "--launch", "1"}).code, 1);
  EXPECT_THAT(world.run({"job-list", "--stopped"}).out,
              HasSubstr("6 of 6 done, 1 failed, best loss 0.1 at lr=1 seed=0"));
  const CommandResult table = world.run({"sweep", "--results", "1", "--csv", "-"});
  EXPECT_THAT(table.lines()[0], "point,key,lr,seed,state,exit,loss,seconds,server");
  EXPECT_THAT(table.lines()[5], MatchesRegex("4,5,2,1,failed,3,0.21,[0-9]+,[ab]"));
  EXPECT_THAT(world.run({"sweep", "--results", "1", "--best", "max:loss"}).err,
              HasSubstr("6 of 6 done, 1 failed, best loss 0.22 at lr=2 seed=2"));
  EXPECT_EQ(world.run({"--json", "sweep", "--results", "1", "--best", "max:loss"}).json().at("best"), 5);
  std::vector<std::string> lines = {};
  for (const std::string& line : CommandResult{0, read_file_if_there(ran).value_or(""), ""}.lines()) {
    lines.push_back(line);
  }
  EXPECT_THAT(lines, UnorderedElementsAre("1/0", "1/1", "1/2", "2/0", "2/1", "2/1", "2/2"));
  EXPECT_THAT(world.run({"show", "1"}).out, AllOf(HasSubstr("launcher   sweep, 6 points"),
                                                  ::testing::ContainsRegex("SERVER +POINT +STARTED")));
  EXPECT_THAT(world.run({"rerun", "1", "--yes"}), Refused("remote sweep --resume 1"));
  EXPECT_EQ(world.run({"job-clean", "--yes"}).code, 0);
  EXPECT_TRUE(fs::is_empty(world.there("a") / ".jobs/.sweeps"));
}

TEST_F(CommandSweep, APointIsShownAsSoonAsItRuns) {
  const fs::path go = world.home() / "go";
  const std::string line = "echo point {n}; until [ -e " + go.string() + " ]; do sleep 0.1; done";
  ASSERT_EQ(world.run({"sweep", "--name", "grid", "--param", "n=0..3", "--cmd", line}).code, 0);
  ASSERT_TRUE(eventually([&] { return world.run({"job-tail", "1", "--no-follow"}).out == "point 0\n"; }));
  ASSERT_TRUE(eventually([&] { return world.run({"job-tail", "2", "--no-follow"}).out == "point 1\n"; }));
  EXPECT_EQ(world.run({"job-tail", "grid", "--no-follow"}).out, "point 0\n");
  EXPECT_THAT(world.run({"job-tail", "4", "--no-follow"}), Refused("waits for its turn"));
  const CommandResult all = world.run({"job-tail", "--launch", "grid", "--all", "--no-follow"});
  EXPECT_THAT(all, Ends(0, AllOf(HasSubstr("point 0"), HasSubstr("point 1")),
                        HasSubstr("2 points of the sweep wait for their turn")));
  EXPECT_EQ(world.run({"job-kill", "--launch", "grid"}).code, 0);
}

TEST_F(CommandSweep, TopShowsEachPointWhereItRuns) {
  const fs::path go = world.home() / "go";
  const std::string line =
      "echo loss 0.{n}; echo loss 0.{n}; until [ -e " + go.string() + "{n} ]; do sleep 0.1; done";
  ASSERT_EQ(world.run({"sweep", "--param", "n=1..3", "--cmd", line}).code, 0);
  // The running points, by server.
  const auto running = [&] {
    std::map<std::string, std::vector<std::string>> all;
    for (const auto& server : world.run({"top", "--once", "--json"}).json()) {
      for (const auto& job : server["jobs"]) {
        if (job["state"] == "running") {
          all[server["server"]].push_back(job["command"].get<std::string>().substr(0, 13));
        }
      }
    }
    return all;
  };
  until([&] { return running().contains("a") && running().contains("b"); }, "a point to run on each server");
  auto all = running();
  const std::string second = all["b"].at(0);
  EXPECT_EQ(all["b"].size(), 1U);
  EXPECT_THAT(all["a"], ElementsAre(second == "echo loss 0.1" ? "echo loss 0.2" : "echo loss 0.1"));
  EXPECT_THAT(world.run({"top", "--once"}).out, AllOf(HasSubstr("echo loss 0.2"), Not(HasSubstr("{n}"))));
  write_file_atomic(go.string() + second.back(), "");
  // The point that ended is gone, and the third point runs instead.
  until([&] { return running()["b"] == std::vector<std::string>{"echo loss 0.3"}; }, "the third point");
  for (const char* number : {"1", "2", "3"}) {
    write_file_atomic(go.string() + number, "");
  }
  EXPECT_EQ(world.run({"job-wait", "--launch", "1"}).code, 0);
  EXPECT_TRUE(running().empty());
  const auto data = world.run({"report", "--json"}).json();
  std::set<int> colors;
  std::vector<std::string> labels;
  for (const auto& curve : data["curves"]) {
    colors.insert(curve["color"].get<int>());
    labels.push_back(curve["label"]);
  }
  EXPECT_THAT(labels, UnorderedElementsAre("n=1", "n=2", "n=3"));
  EXPECT_EQ(colors.size(), 3U);
  EXPECT_EQ(data["jobs"][1]["label"], "n=2");
  EXPECT_EQ(data["tails"][1]["label"], "n=2");
}

TEST_F(CommandSweep, WhatFollowedPointsPrintedIsKnown) {
  const fs::path go = world.home() / "go";
  const std::string line = "echo up; until [ -e " + go.string() + " ]; do sleep 0.1; done; echo loss 0.{n}";
  ASSERT_EQ(world.run({"sweep", "--param", "n=1,2", "--cmd", line}).code, 0);
  const auto both_run = [&] { return in_state("running") == 2; };
  until(both_run, "both points to run");
  const auto follower = world.start({"job-tail", "--launch", "1", "--all"});
  until([&] { return follower->out().find("up") != std::string::npos; }, "the follower");
  write_file_atomic(go, "");
  EXPECT_THAT(follower->wait().err, HasSubstr("2 of 2 done, best loss 0.1 at n=1"));
  EXPECT_THAT(world.run({"show", "1"}).out, HasSubstr("best loss 0.1 at n=1"));
  EXPECT_THAT(world.run({"sweep", "--resume", "1"}), Refused("all of its points have ended\n"));
}

TEST_F(CommandSweep, ADryRunShowsThePointsAndStartsNone) {
  std::vector<std::string> dry = {"sweep", "--dry-run", "--param", "lr=1,2", "--",
                                  "echo",  "{lr}",      "--token", "hunter2"};
  const CommandResult shown = world.run(dry);
  EXPECT_THAT(shown.lines(), ElementsAre("sweep: 2 points on a, b", "POINT  lr  COMMAND",
                                         StartsWith("    0  1   echo 1 --token "),
                                         StartsWith("    1  2   echo 2 --token ")));
  EXPECT_THAT(shown.out, Not(HasSubstr("hunter2")));
  dry.insert(dry.begin(), "--json");
  EXPECT_EQ(world.run(dry).json().at("points").at(1).at("values").at("lr"), "2");
  EXPECT_THAT(world.run({"sweep", "--dry-run", "--results", "last"}), Refused("--dry-run"));
  EXPECT_EQ(world.run({"--json", "job-list"}).out, "[]\n");
}

TEST_F(CommandSweep, AScriptAloneIsGivenToPython) {
  ASSERT_EQ(world.run({"sweep", "--no-check", "--param", "n=1", "--", "nosuch.py", "{n}"}).code, 0);
  EXPECT_EQ(world.run({"--json", "job-list"}).json().at(0).at("command"), "python nosuch.py '{n}'");
}

TEST_F(CommandSweep, EndsAsOneAndGoesOn) {
  const fs::path go = world.home() / "go";
  ASSERT_EQ(world
                .run({"sweep", "--param", "n=0..7", "--cmd",
                      "until [ -e " + go.string() + " ]; do sleep 0.1; done"})
                .code,
            0);
  ASSERT_TRUE(eventually([&] { return in_state("running") == 2; }));
  EXPECT_THAT(world.run({"job-list"}).out, AllOf(HasSubstr("0 of 8 done"), HasSubstr("2 running, 6 queued")));
  EXPECT_THAT(world.run({"sweep", "--resume", "1"}),
              Ends(0, HasSubstr("continues: 6 points"), HasSubstr("watch it")));
  ASSERT_TRUE(eventually([&] { return in_state("running") == 2; }));
  const CommandResult killed = world.run({"job-kill", "--launch", "last"});
  EXPECT_THAT(killed,
              Ends(0, HasSubstr("was never started there"), testing::_));  // it may print how long it takes
  EXPECT_EQ(in_state("killed"), 8U);
  write_file_atomic(go, "");
  EXPECT_EQ(world.run({"sweep", "--resume", "last"}).code, 0);
  EXPECT_EQ(world.run({"job-wait", "--launch", "last"}).code, 1);  // the killed points count
  EXPECT_EQ(in_state("succeeded"), 8U);
  EXPECT_THAT(world.run({"sweep", "--resume", "last"}), Refused("the sweep has no missing points"));
}

TEST_F(CommandSweep, WhatIsWrongIsRefusedBeforeAnythingStarts) {
  EXPECT_THAT(world.run({"sweep", "--param", "lr=1", "--", "echo", "{lrr}"}), Refused("did you mean 'lr'?"));
  EXPECT_THAT(world.run({"sweep", "--", "echo"}), Refused("there are no points"));
  EXPECT_THAT(world.run({"sweep", "--param", "a=x y", "--cmd", "echo {a}"}), Refused("as separate words"));
  EXPECT_THAT(world.run({"sweep", "--param", "a=1"}), Refused("--cmd is required"));
  EXPECT_THAT(world.run({"sweep", "--results", "1", "--resume", "1"}), Refused("one of them"));
  EXPECT_THAT(world.run({"sweep", "--results", "1"}), Refused("no launch"));
  world.job("a", "true");
  EXPECT_THAT(world.run({"sweep", "--param", "a=1", "--best", "min:loss", "--", "true"}),
              Refused("--results"));
  EXPECT_THAT(world.run({"--json", "job-list", "--stopped"}).json().size(), 1);
}

}  // namespace
}  // namespace remote::test
