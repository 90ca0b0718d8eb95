// `remote launch`, `remote torch-launch` and `remote helper-torch-launch`.

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>

#include "base/files.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/launch_store.hpp"
#include "support/command_world.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"
#include "ui/terminal.hpp"

namespace remote::test {
namespace {

class CommandLaunch : public ::testing::Test {
 protected:
  CommandLaunch() {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n"
        "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n");
  }
  CommandResult launch(std::vector<std::string> words) {
    words.insert(words.begin(), "launch");
    return world.run(words);
  }
  CommandWorld world;
};

TEST_F(CommandLaunch, StartsTheRanksAndSaysWhereTheyAre) {
  const CommandResult result =
      launch({"--cmd", "sleep 1000", "--nproc-per-node", "2", "--master-port", "29500"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.lines(), ElementsAre("KEY  RANKS  SERVER", "1-4      4  a, b"));
  EXPECT_EQ(result.err, "4 ranks, master 127.0.0.1:29500; follow rank 0 with: remote job-tail --launch 1\n");
}

TEST_F(CommandLaunch, OneRankIsNamedAsOne) {
  const CommandResult result = launch({"--cmd", "true", "--server", "a", "--follow"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err, StartsWith("1 rank (one per server"));
}

TEST_F(CommandLaunch, RanksForGpusNeedGpusAndAutoSaysWhatItChose) {
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "gpu"}), Refused("no GPU was found"));
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "gpu", "--dry-run"}),
              Refused("or for one for each core"));
  EXPECT_TRUE(world.store().list().jobs.empty());
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "auto"}).err,
              HasSubstr("(auto: no GPUs found, one for each core"));
  world.servers().add_gpus(3);
  const CommandResult gpus = launch({"--cmd", "true", "--nproc-per-node", "auto"});
  EXPECT_THAT(gpus.err, HasSubstr("6 ranks (auto: one for each GPU), master"));
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "auto", "--dry-run"}).out,
              HasSubstr("6 ranks (auto: one for each GPU) on 2 servers"));
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "gpu"}).err, HasSubstr("6 ranks, master"));
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "gpu", "--env", "CUDA_VISIBLE_DEVICES", "-1"}),
              Refused("CUDA_VISIBLE_DEVICES hides every GPU"));
}

TEST_F(CommandLaunch, JsonIsTheJobsOfTheRanks) {
  const CommandResult result = launch({"--cmd", "sleep 1000", "--nproc-per-node", "1", "--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  const auto all = result.json();
  ASSERT_EQ(all.size(), 2U);
  for (int rank : {0, 1}) {
    const auto& job = all[static_cast<std::size_t>(rank)];
    EXPECT_EQ(job["rank"], rank);
    EXPECT_EQ(job["world_size"], 2);
    EXPECT_EQ(job["server"], rank == 0 ? "a" : "b");
    EXPECT_EQ(job["state"], "running");
    EXPECT_EQ(job["launch"], all[0]["launch"]);
    EXPECT_EQ(job["command"], "sleep 1000");
  }
  EXPECT_EQ(all[0]["tags"], nlohmann::json({"sleep", "1000", "distributed", "master"}));
  EXPECT_EQ(all[1]["tags"], nlohmann::json({"sleep", "1000", "distributed"}));
}

TEST_F(CommandLaunch, EachRankHasItsVariables) {
  const CommandResult result = launch(
      {"--cmd",
       "echo $RANK $WORLD_SIZE $LOCAL_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT \"$MINE\" $OMP_NUM_THREADS",
       "--nproc-per-node", "2", "--master-port", "29500", "-e", "MINE=a b", "--follow"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.lines().back(), "0 4 0 0 127.0.0.1 29500 a b 1");
  EXPECT_THAT(result.err, HasSubstr("all 4 ranks succeeded\n"));
  const CommandResult all = world.run({"job-tail", "--job", "1", "--all", "--quiet"});
  EXPECT_THAT(all.lines(), ::testing::UnorderedElementsAre(
                               "[0] 0 4 0 0 127.0.0.1 29500 a b 1", "[1] 1 4 1 0 127.0.0.1 29500 a b 1",
                               "[2] 2 4 0 1 127.0.0.1 29500 a b 1", "[3] 3 4 1 1 127.0.0.1 29500 a b 1"));
}

TEST_F(CommandLaunch, VariablesOfTheLoginAreKept) {
  const Variable threads{"OMP_NUM_THREADS", "7"};
  const Variable interface { "NCCL_SOCKET_IFNAME", "ib0" };
  const std::string command = "echo $OMP_NUM_THREADS $NCCL_SOCKET_IFNAME";
  EXPECT_EQ(launch({"--cmd", command, "--nproc-per-node", "2", "--follow"}).lines().back(), "7 ib0");
  EXPECT_EQ(launch({"--cmd", command, "--follow", "-e", "OMP_NUM_THREADS=3"}).lines().back(), "3 ib0");
}

TEST_F(CommandLaunch, LinesOfManyRanksAreFoldedFilteredAndChosen) {
  launch({"--cmd", "echo begun; [ $RANK != 2 ] || echo nan; echo \"rank $RANK\"; echo ended; echo late >&2",
          "--nproc-per-node", "2", "--follow"});
  const auto lines_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"job-tail", "--launch", "1", "--quiet"});
    return world.run(words).lines();
  };
  EXPECT_THAT(lines_of({"--fold", "--no-follow", "--grep", "begun|nan|ended"}),
              ::testing::ElementsAre("[0-3] begun", "[2] nan", "[0-3] ended"));
  EXPECT_THAT(lines_of({"--fold", "--grep", "rank [0-2]"}),
              ::testing::UnorderedElementsAre("[0] rank 0", "[1] rank 1", "[2] rank 2"));
  EXPECT_THAT(lines_of({"--rank", "1,3", "--fold", "--no-follow", "-n", "1"}),
              ::testing::ElementsAre("[1, 3] ended"));
  EXPECT_THAT(lines_of({"--rank", "1,3", "--grep", "^rank"}),
              ::testing::UnorderedElementsAre("[1] rank 1", "[3] rank 3"));
  const CommandResult events =
      world.run({"--jsonl", "job-tail", "1", "--fold", "--no-follow", "--grep", "late"});
  EXPECT_THAT(events.out, AllOf(HasSubstr(R"("stream":"err","text":"late","ranks":[0,1,2,3]})")));
  EXPECT_THAT(world.run({"job-tail", "--launch", "1", "--grep", "("}), Refused("cannot search for '('"));
  EXPECT_THAT(world.run({"job-tail", "--launch", "1", "--rank", "1,4"}), Refused("there is no rank 4"));
  launch({"--cmd", "true", "--nproc-per-node", "1"});
  EXPECT_THAT(world.run({"job-tail", "--launch", "1", "--launch", "5", "--fold"}),
              Refused("name one launch"));
}

TEST_F(CommandLaunch, FollowTellsWhichRankFailedFirstAndIsOne) {
  const std::string both = shell_quote((world.project() / "rank 0 runs").string());
  const CommandResult result = launch(
      {"--cmd",
       fmt::format(
           "if [ $RANK = 0 ]; then : >{0}; exec sleep 1000; fi; until [ -e {0} ]; do sleep 0.05; done; "
           "echo the reason >&2; exit 5",
           both),
       "--nproc-per-node", "1", "--failure-grace", "0", "--follow"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("rank 1 on b failed first (exit 5, "),
            HasSubstr(": last lines of its stderr:\n  the reason\n"),
            HasSubstr("1 other was ended after it\n"), HasSubstr("its output: remote job-tail --job 2\n"),
            HasSubstr("a rank failed; ending the other ranks\n"), Not(HasSubstr("job 2 (rank"))));
  EXPECT_THAT(world.run({"--json", "job-list"}), Ends(0, "[]\n", ""));
}

TEST_F(CommandLaunch, ALongVerdictBreaksBetweenWordsOnATerminal) {
  const CommandResult result =
      world.run({"launch", "--cmd", "[ $RANK != 1 ] || { echo why >&2; exit 5; }; exec sleep 1000",
                 "--nproc-per-node", "1", "--failure-grace", "0", "--follow", "--color", "never"},
                screen());
  EXPECT_THAT(result.err, ::testing::ContainsRegex(
                              "rank 1 on b failed first [(]exit 5, [^\n]*\n[^\n]*stderr:\r?\n  why"));
  std::string rows = result.err;  // \r starts a row over
  std::ranges::replace(rows, '\r', '\n');
  for (const std::string& line : split(rows, '\n')) {
    EXPECT_LE(ui::display_width(line), 100) << line;
  }
}

TEST_F(CommandLaunch, TheEndSaysWhoseExitStatusAPipeHas) {
  const auto end = [&](const std::string& command) {
    return launch({"--cmd", command, "--nproc-per-node", "1", "--server", "a", "--follow"}).err;
  };
  EXPECT_THAT(end("false | tee log"), AllOf(HasSubstr("the rank succeeded\n"), HasSubstr("status of `tee`")));
  EXPECT_THAT(end("true"), Not(HasSubstr("status of")));
}

TEST_F(CommandLaunch, TheEndSaysThatRanksWereSeparateTrainings) {
  const std::string script = "[ -n \"$RANK\" ] || torchrun train.py\n";
  for (const fs::path& folder : {world.project(), world.there("a"), world.there("b")}) {
    make_folders(folder);
    write_file_atomic(folder / "train.sh", script);
  }
  EXPECT_THAT(launch({"--cmd", "sh train.sh", "--nproc-per-node", "1", "--follow"}).err,
              AllOf(HasSubstr("all 2 ranks succeeded\n"), HasSubstr("these were 2 separate trainings")));
}

TEST_F(CommandLaunch, OneRankIsJudgedAsManyAre) {
  const auto one = [&](const std::string& command) {
    return launch({"--cmd", command, "--nproc-per-node", "1", "--server", "a", "--follow"});
  };
  EXPECT_THAT(one("exit 0").err, HasSubstr("the rank succeeded\n"));
  EXPECT_THAT(one("echo the reason >&2; exit 3").err,
              AllOf(HasSubstr("rank 0 on a failed (exit 3, "), HasSubstr("the reason\n"),
                    Not(HasSubstr("  the reason"))))
      << "what was just shown is not printed again";
  EXPECT_THAT(world.run({"job-wait", "--launch", "last"}).err, HasSubstr("\n  the reason\n"));
  EXPECT_THAT(world.run({"job-tail", "--launch", "last", "--no-follow", "--grep", "nothing"}).err,
              HasSubstr("\n  the reason\n"));
}

TEST_F(CommandLaunch, EveryCommandTellsTheSameVerdict) {
  ASSERT_EQ(
      launch({"--cmd",
              "[ $RANK != 1 ] || { sleep 0.3; exit 5; }; sleep 0.8; echo 'Connection closed by peer' >&2; "
              "exit 1",
              "--nproc-per-node", "1"})
          .code,
      0);
  const auto verdict =
      AllOf(HasSubstr("rank 1 on b failed first (exit 5, "), Not(HasSubstr("job 1 (rank 0")));
  const CommandResult tail = world.run({"job-tail", "--launch", "last"});
  EXPECT_EQ(tail.code, 1) << tail;
  EXPECT_THAT(tail.err, verdict);
  EXPECT_THAT(world.run({"job-tail", "--launch", "last", "--no-follow"}).err, verdict);
  EXPECT_THAT(world.run({"job-tail", "--job", "1", "--no-follow"}).err, verdict);
  EXPECT_THAT(world.run({"job-wait", "--launch", "last"}).err, verdict);
  EXPECT_THAT(world.run({"job-list"}).out, HasSubstr("rank 1 failed exit 5"));
}

TEST_F(CommandLaunch, OnFailureLeaveKeepsTheOthers) {
  EXPECT_EQ(launch({"--cmd", "[ $RANK != 1 ] || exit 5; exec sleep 1000", "--nproc-per-node", "1",
                    "--on-failure", "leave"})
                .code,
            0);
  EXPECT_EQ(world.run({"job-wait", "--job", "2"}).code, 1);
  EXPECT_EQ(world.run({"--json", "job-list"}).json().at(0)["rank"], 0);
}

TEST_F(CommandLaunch, AnInterruptEndsTheFollowingAndNotTheRanks) {
  const auto running =
      world.start({"launch", "--cmd", "echo up; exec sleep 1000", "--nproc-per-node", "1", "--follow"});
  until([&] { return running->out().find("up\n") != std::string::npos; }, "rank 0's output");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(
      result.err,
      HasSubstr("stopped following; the ranks keep running. To end them: remote job-kill --launch 1\n"));
  EXPECT_EQ(world.run({"--json", "job-list"}).json().size(), 2U);
}

TEST_F(CommandLaunch, DryRunShowsThePlanAndStartsNothing) {
  const CommandResult result = launch({"--cmd", "./run --token hunter2", "--nproc-per-node", "2",
                                       "--master-port", "29500", "-e", "API_KEY=hunter3", "--dry-run"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.lines().front(),
              MatchesRegex("launch [0-9a-f]+: 4 ranks on 2 servers, launcher ranks, master "
                           "127.0.0.1 port 29500"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("on every process\n  MASTER_ADDR=127.0.0.1\n"),
                                HasSubstr("\nb (node 1)\n  rank 2 (local 0): ./run --token ********\n"),
                                HasSubstr("API_KEY=********"), Not(HasSubstr("hunter"))));
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  const CommandResult json = launch({"--cmd", "./run", "--nproc-per-node", "2", "--master-port", "29500",
                                     "--dry-run", "--json", "--server", "b"});
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.json()["world_size"], 2);
  EXPECT_EQ(json.json()["launcher"], "ranks");
  EXPECT_EQ(json.json()["master_port"], 29500);
  const auto second = json.json()["processes"].at(1);
  EXPECT_EQ(second["server"], "b");
  EXPECT_EQ(second["rank"], 1);
  EXPECT_EQ(second["local_rank"], 1);
  EXPECT_EQ(second["command"], "./run");
  EXPECT_EQ(second["env"]["RANK"], "1");
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
}

constexpr const char* named_launches =
    "name: proj\npython: {manager: system}\nservers:\n"
    "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n"
    "launch: {cmd: ./run --token hunter2, env: {API_KEY: hunter3, MODE: base}, servers: a}\n"
    "launches:\n  small: {nproc_per_node: 1}\n  full: {nproc_per_node: 2, servers: [a, b], env: {MODE: "
    "full}}\n";

// "KEY=VALUE FROM" of each setting.
std::vector<std::string> settings_of(const CommandResult& result) {
  std::vector<std::string> all;
  const auto json = result.json();
  for (const auto& one : json["settings"]) {
    all.push_back(fmt::format("{}={} {}", one["key"].get<std::string>(), one["value"].get<std::string>(),
                              one["from"].get<std::string>()));
  }
  return all;
}

TEST_F(CommandLaunch, ANamedLaunchHasItsSettingsAndOptionsWin) {
  world.configure(named_launches);
  const CommandResult full = launch({"full", "--dry-run", "--json", "-e", "SEED=3", "--no-check"});
  EXPECT_EQ(full.json()["world_size"], 4) << full;
  EXPECT_EQ(full.json()["processes"].at(0)["env"]["MODE"], "full");
  EXPECT_EQ(full.json()["processes"].at(0)["env"]["SEED"], "3");
  EXPECT_THAT(settings_of(full),
              ElementsAre("cmd=./run --token ******** configs.yaml:6 launch",
                          "nproc_per_node=2 configs.yaml:9 launches.full",
                          "servers=a, b configs.yaml:9 launches.full", "launcher=ranks default",
                          "init_method=env default", "on_failure=kill default", "follow=false default",
                          "rsync=false default", "check=false command line", "frozen=false default",
                          "env API_KEY=******** configs.yaml:6 launch",
                          "env MODE=full configs.yaml:9 launches.full", "env SEED=3 command line"));
  const CommandResult other = launch(
      {"--nproc-per-node", "1", "full", "--server", "b", "--dry-run", "--json", "--", "./other", "x y"});
  EXPECT_EQ(other.json()["world_size"], 1) << other;
  EXPECT_EQ(other.json()["processes"].at(0)["server"], "b");
  EXPECT_EQ(other.json()["processes"].at(0)["command"], "./other 'x y'");
  EXPECT_THAT(settings_of(other),
              AllOf(Contains("cmd=./other 'x y' command line"), Contains("nproc_per_node=1 command line"),
                    Contains("servers=b command line")));
  const CommandResult text = launch({"small", "--dry-run"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("\nSETTING"), HasSubstr("configs.yaml:8 launches.small"),
                              Not(HasSubstr("hunter"))));
}

TEST_F(CommandLaunch, AWordThatIsNoLaunchIsACommandOrAMistake) {
  world.configure(named_launches);
  EXPECT_EQ(launch({"--dry-run", "--json", "hostname"}).json()["processes"].at(0)["command"], "hostname");
  EXPECT_EQ(launch({"--dry-run", "--json", "--", "full"}).json()["processes"].at(0)["command"], "full");
  EXPECT_EQ(launch({"--dry-run", "--json", "./ful"}).json()["processes"].at(0)["command"], "./ful");
  EXPECT_THAT(launch({"ful", "--dry-run"}), Ends(2, "",
                                                 "error: configs.yaml has no launch 'ful'\n hint: did you "
                                                 "mean 'full'? A command of this name goes after --\n"));
  EXPECT_THAT(launch({"full", "small"}), Ends(2, "", HasSubstr("'small' follows the launch's name")));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  world.configure("name: proj\nservers:\n  a: {hostname: a}\nlaunches: {x: {follow: true}, y: {}}\n");
  EXPECT_THAT(launch({}), Ends(2, "", HasSubstr(", or a launch by name: x, y\n")));
  EXPECT_THAT(launch({"x"}), Ends(2, "", HasSubstr("or `launch: {cmd: …}` in configs.yaml, or a launch")));
}

TEST_F(CommandLaunch, TheThreeCommandsDifferInTheCommandOfARank) {
  const auto command = [&](std::vector<std::string> words) {
    words.insert(words.end(),
                 {"--cmd", "train.py", "--nproc-per-node", "1", "--server", "a", "--dry-run", "--json"});
    return world.run(words).json()["processes"].at(0)["command"].get<std::string>();
  };
  EXPECT_EQ(command({"launch"}), "train.py");
  EXPECT_EQ(command({"launch", "--local-rank-arg"}), "train.py --local_rank=0");
  EXPECT_EQ(command({"torch-launch"}), "python train.py");
  EXPECT_EQ(command({"torch-launch", "--use-env"}), "python train.py");
  EXPECT_EQ(command({"torch-launch", "--local-rank-arg"}), "python train.py --local_rank=0");
  EXPECT_EQ(command({"helper-torch-launch"}), "python train.py --local_rank=0");
  EXPECT_EQ(command({"helper-torch-launch", "--use-env"}), "python train.py");
}

TEST_F(CommandLaunch, TheStacksOfPythonCanBeReadByDefault) {
  const auto enabled = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--cmd", "true", "--nproc-per-node", "1", "--server", "a", "--json"});
    const std::string id = world.run(words).json().at(0)["id"];
    return read_file(world.there("a") / ".jobs" / id / "spec.json").find("\"startup_files\":\"none\"") ==
           std::string::npos;
  };
  EXPECT_TRUE(enabled({"torch-launch"}));
  EXPECT_TRUE(enabled({"helper-torch-launch"}));
  EXPECT_TRUE(enabled({"launch", "--enable-stacks"}));
  EXPECT_FALSE(enabled({"launch"}));
  EXPECT_FALSE(enabled({"torch-launch", "--no-stacks"}));
}

TEST_F(CommandLaunch, TagsTakeThePlaceOfTheWordsOfTheCommand) {
  const auto plan = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--nproc-per-node", "1", "--server", "a", "--dry-run", "--json"});
    return world.run(words).json()["processes"].at(0)["tags"];
  };
  EXPECT_EQ(plan({"torch-launch", "--cmd", "python train.py"}),
            nlohmann::json({"train.py", "distributed", "torch", "master"}));
  EXPECT_EQ(plan({"torch-launch", "--cmd", "train.py", "--tag", "x", "--tag", "y"}),
            nlohmann::json({"x", "y", "master"}));
}

TEST_F(CommandLaunch, AutoCountsTheGpusThatARankMaySee) {
  world.servers().add_gpus(8);
  const auto ranks = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"torch-launch", "--cmd", "-m pkg.train", "--dry-run", "--json"});
    return world.run(words).json()["processes"];
  };
  EXPECT_EQ(ranks({}).size(), 16U);
  EXPECT_EQ(ranks({"--nproc-per-node", "gpu", "-e", "CUDA_VISIBLE_DEVICES=2,3"}).size(), 4U);
  const CommandResult by_command =
      world.run({"torch-launch", "--dry-run", "--json", "--cmd", "CUDA_VISIBLE_DEVICES=2,3 python train.py"});
  EXPECT_EQ(by_command.json()["processes"].size(), 4U) << by_command;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n"
      "  a: {hostname: a, internal_address: 127.0.0.1, gpus: [5], env: {MINE: a}}\n"
      "  b: {hostname: b, gpus: [1, 2]}\n");
  const auto listed = ranks({});
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["env"]["CUDA_VISIBLE_DEVICES"], "5");
  EXPECT_EQ(listed[0]["env"]["MINE"], "a");
  EXPECT_EQ(listed[1]["env"]["CUDA_VISIBLE_DEVICES"], "1,2");
  EXPECT_EQ(listed[0]["command"], "python -m pkg.train");
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "echo $MINE $CUDA_VISIBLE_DEVICES"}),
              Ends(0, "a 5\n", ""));
}

TEST_F(CommandLaunch, AutoCountsTheCoresThatTheLoginMayUse) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) {
    GTEST_SKIP() << "there is one core";
  }
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) {
    ++first;
  }
  world.servers().add_program("sh", fmt::format("exec taskset -c {} /bin/dash \"$@\"\n", first));
  for (const char* number : {"auto", "cpu"}) {
    EXPECT_THAT(launch({"--server", "a", "--cmd", "true", "--nproc-per-node", number, "--dry-run"}).out,
                AllOf(HasSubstr("1 rank ("), HasSubstr("one for each core; 1 of "),
                      HasSubstr("affinity of the login")))
        << number;
  }
}

TEST_F(CommandLaunch, GpusOfAmdAreCounted) {
  world.servers().add_program("rocm-smi",
                              "echo '{\"card0\": {}, \"card1\": {}, \"card2\": {}, \"card3\": {}}'\n");
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n"
      "  a: {hostname: a, internal_address: 127.0.0.1, gpus: 4}\n");
  const CommandResult all = launch({"--cmd", "true", "--nproc-per-node", "auto", "--dry-run"});
  EXPECT_THAT(all.out, HasSubstr("4 ranks (auto: one for each GPU) on 1 server"));
  EXPECT_EQ(all.err, "") << "as many as configs.yaml says";
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "gpu", "--dry-run"}).out, HasSubstr("4 ranks"));
  const auto some =
      world.run({"launch", "--cmd", "true", "--include", "a:0,2", "--dry-run", "--json"}).json();
  ASSERT_EQ(some["processes"].size(), 2U);
  EXPECT_EQ(some["processes"][0]["env"]["CUDA_VISIBLE_DEVICES"], "0,2");
  EXPECT_EQ(world.run({"servers", "--json"}).json()[0]["gpus"], 4);
}

TEST_F(CommandLaunch, AutoCountsTheGpusThatTheLoginLeaves) {
  world.servers().add_gpus(4);
  world.servers().set_variable("CUDA_VISIBLE_DEVICES", "1");
  const auto dry = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"launch", "--server", "a", "--cmd", "true", "--dry-run"};
    words.insert(words.end(), more.begin(), more.end());
    return world.run(words);
  };
  EXPECT_THAT(
      dry({"--nproc-per-node", "auto"}).out,
      HasSubstr("1 rank (auto: one for each GPU; 1 of 4 GPUs: CUDA_VISIBLE_DEVICES is set by the login)"));
  EXPECT_THAT(
      dry({"--nproc-per-node", "gpu"}).out,
      HasSubstr(
          "1 rank (one for each GPU; 1 of 4 GPUs: CUDA_VISIBLE_DEVICES is set by the login) on 1 server"));
  EXPECT_THAT(dry({"--nproc-per-node", "gpu", "-e", "CUDA_VISIBLE_DEVICES=0,2"}).out, HasSubstr("2 ranks"));
  EXPECT_THAT(world.run({"launch", "--include", "a:0", "--cmd", "true", "--dry-run"}),
              AllOf(Refused("there is no GPU 0 on a"),
                    Refused("CUDA_VISIBLE_DEVICES, set by the login, leaves GPU 1")));
  EXPECT_EQ(world.run({"servers", "--json"}).json()[0]["gpus"], 1);
  EXPECT_THAT(world.run({"launch", "--server", "a", "--gpus", "2", "--", "true"}).err,
              HasSubstr("2 GPUs needed, and there is 1 of 4: CUDA_VISIBLE_DEVICES is set by the login"));
  const CommandResult leased = world.run({"launch", "--server", "a", "--gpus", "1", "--follow", "--", "sh",
                                          "-c", "echo device $CUDA_VISIBLE_DEVICES"});
  EXPECT_THAT(leased.out, HasSubstr("device 1"));
  world.servers().set_variable("CUDA_VISIBLE_DEVICES", "");
  EXPECT_THAT(dry({"--nproc-per-node", "gpu"}), Refused("CUDA_VISIBLE_DEVICES of the login hides every GPU"));
  EXPECT_THAT(dry({"--nproc-per-node", "auto"}).out,
              HasSubstr("one for each core; 0 of 4 GPUs: CUDA_VISIBLE_DEVICES is set by the login"));
}

TEST_F(CommandLaunch, AutoCountsTheGpusThatThePrologueLeaves) {
  world.servers().add_gpus(4);
  world.configure(
      "name: proj\npython: {manager: system}\nprologue: export CUDA_VISIBLE_DEVICES=1,2\nservers:\n"
      "  a: {hostname: a, internal_address: 127.0.0.1}\n");
  const CommandResult all = launch({"--cmd", "true", "--nproc-per-node", "auto", "--dry-run"});
  EXPECT_THAT(all.out,
              HasSubstr("2 ranks (auto: one for each GPU; 2 of 4 GPUs: CUDA_VISIBLE_DEVICES is set by "
                        "the prologue)"));
  for (const std::vector<std::string>& choice :
       std::vector<std::vector<std::string>>{{"--gpus", "1"}, {"--include", "a:1"}}) {
    std::vector<std::string> words = {"--cmd", "true"};
    words.insert(words.end(), choice.begin(), choice.end());
    EXPECT_THAT(launch(words), Refused("sets CUDA_VISIBLE_DEVICES for each job"));
  }
}

TEST_F(CommandLaunch, ADriverThatDoesNotAnswerIsNotAServerWithoutGpus) {
  world.servers().add_program("nvidia-smi", "echo 'Failed to initialize NVML: Unknown Error'\nexit 255\n");
  const std::string why = "a: the driver does not answer: Failed to initialize NVML: Unknown Error";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--nproc-per-node", "auto"},
                                             {"--nproc-per-node", "gpu"},
                                             {"--gpus", "1"},
                                             {"--include", "a:0"},
                                             {"--nproc-per-node", "auto", "--dry-run"},
                                             {"--nproc-per-node", "auto", "-e", "CUDA_VISIBLE_DEVICES=0"}}) {
    std::vector<std::string> all = {"--cmd", "true"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandResult result = launch(all);
    EXPECT_EQ(result.code, 1) << result;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_THAT(result.err, HasSubstr("restart the container"));
  }
  EXPECT_TRUE(world.store().list().jobs.empty());
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--nproc-per-node", "2"},
                                             {"--nproc-per-node", "cpu"},
                                             {"--nproc-per-node", "auto", "-e", "CUDA_VISIBLE_DEVICES="}}) {
    std::vector<std::string> all = {"--cmd", "true", "--dry-run"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(launch(all).code, 0) << "it needs no GPUs";
  }
  EXPECT_THAT(world.run({"servers"}).out, HasSubstr("nvidia-smi: no access"));
  EXPECT_THAT(world.run({"torch-launch", "--cmd", "true", "--nproc-per-node", "1"}).err,
              HasSubstr("gpu-driver: the container has lost its access to the GPUs"));
}

TEST_F(CommandLaunch, ATorchThatCannotUseTheGpusIsNamed) {
  const CommandResult python = world.run({"run", "--server", "a", "--", "python3", "-c",
                                          "import sys; print('python%d.%d' % sys.version_info[:2])"});
  ASSERT_THAT(python.out, StartsWith("python3.")) << python;
  const auto launch_with = [&](const std::string& version) {
    const fs::path folder =
        world.servers().home("a") / ".local/lib" / trim(python.out) / "site-packages/torch";
    fs::create_directories(folder);
    write_file_atomic(folder / "version.py", version);
    return world.run({"torch-launch", "--server", "a", "--nproc-per-node", "1", "--cmd", "train.py"}).err;
  };
  write_file_atomic(world.project() / "train.py", "");
  world.servers().add_nvidia_smi(fs::path(source_folder) / "tests/data/gpus/470");
  EXPECT_THAT(launch_with("__version__ = '2.6.0+cu124'\ncuda = '12.4'\n"),
              HasSubstr("a: torch: 2.6.0+cu124, CUDA 12.4: the driver supports CUDA up to 11.x"));
  EXPECT_THAT(launch_with("__version__ = '2.6.0+cpu'\ncuda = None\n"),
              HasSubstr("a: torch: 2.6.0+cpu: it is built for CPUs only, but the server has 1 GPU"));
  EXPECT_THAT(launch_with("__version__ = '2.4.0+cu118'\ncuda = '11.8'\n"), Not(HasSubstr("torch:")));
}

TEST_F(CommandLaunch, WithoutANumberItStartsOneAServerAndSaysSo) {
  const CommandResult result = launch({"--cmd", "sleep 1000"});
  EXPECT_THAT(result.lines().back(), "1-2      2  a, b");
  EXPECT_THAT(result.err, StartsWith("2 ranks (one per server; --nproc-per-node changes that), master "));
}

// The last command that the messages suggest.
std::vector<std::string> printed_command(const std::string& text) {
  const std::size_t at = text.rfind("remote job-");
  return at == std::string::npos ? std::vector<std::string>{"no command"}
                                 : split(text.substr(at + 7, text.find('\n', at) - at - 7), ' ');
}

TEST_F(CommandLaunch, PrintedCommandsDoWhatTheirSentenceSays) {
  world.job("a", "sleep 1000");  // another user's job
  const auto running = [&] { return world.run({"--json", "job-list"}).json(); };
  const CommandResult started = launch({"--cmd", "echo up; exec sleep 1000", "--nproc-per-node", "2"});
  // Follows rank 0 with the suggested command, interrupts it, and uses the suggestion for all four ranks.
  for (std::vector<std::string> words : {printed_command(started.err), {"job-tail", "--job", "4"}}) {
    const auto following = world.start(words);
    until([&] { return following->out().find("up\n") != std::string::npos; }, "the rank's output");
    following->interrupt();
    const CommandResult stopped = following->wait();
    EXPECT_THAT(stopped.err, HasSubstr("the ranks keep running. To end them: remote job-kill --launch 2\n"));
    if (words.back() == "4") {
      EXPECT_EQ(world.run(printed_command(stopped.err)).code, 0);
    }
  }
  ASSERT_EQ(running().size(), 1U) << "all four, and nothing else";
  EXPECT_EQ(running()[0]["key"], 1);
  const auto one = world.start({"job-tail", "--job", "1"});
  one->interrupt();
  const CommandResult stopped = one->wait();
  EXPECT_THAT(stopped.err, HasSubstr("the job keeps running. To end it: "));
  EXPECT_EQ(world.run(printed_command(stopped.err)).code, 0);
  EXPECT_EQ(running().size(), 0U);
  // If one rank of a launch was killed, the suggestion stops the other ranks and nothing else.
  world.job("a", "sleep 1000");
  ASSERT_EQ(launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "2"}).code, 0);
  const CommandResult ended = world.run({"job-kill", "--job", "9"});
  EXPECT_THAT(
      ended,
      Ends(0, "job 9 (rank 2 on b): killed\n",
           HasSubstr(
               "3 other ranks of the same launch still run. To end them: remote job-kill --launch 7\n")));
  EXPECT_EQ(running().size(), 4U);
  EXPECT_EQ(world.run(printed_command(ended.err)).code, 0);
  ASSERT_EQ(running().size(), 1U);
  EXPECT_EQ(running()[0]["key"], 6);
  // The commands suggested for the output, by a verdict and by job-run.
  const CommandResult failed =
      launch({"--cmd", "echo one; exit 3", "--nproc-per-node", "1", "--server", "a", "--follow"});
  EXPECT_THAT(world.run(printed_command(failed.err)).out, HasSubstr("one\n")) << failed;
  const CommandResult job = world.run({"job-run", "--server", "a", "--cmd", "echo two"});
  EXPECT_THAT(world.run(printed_command(job.err)).out, HasSubstr("two\n"));
}

TEST_F(CommandLaunch, WhatBecameOfOneThatFailedIsTold) {
  world.servers().set_faults({.before = 4});
  const CommandResult killed = launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "1"});
  world.servers().set_faults({});
  EXPECT_EQ(killed.code, 1);
  EXPECT_THAT(killed.err, AllOf(HasSubstr("the launch failed: none of its ranks is running\n"),
                                Not(HasSubstr("follow rank 0"))));
  EXPECT_THAT(killed.out, Not(HasSubstr("PID")));
}

TEST_F(CommandLaunch, WhatIsLeftOfOneThatFailedIsTold) {
  world.servers().set_faults({.before = 4});
  const CommandResult left =
      launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "1", "--on-failure", "leave"});
  world.servers().set_faults({});
  EXPECT_THAT(left.err, HasSubstr("of its 2 jobs may run. To end "));
  EXPECT_EQ(world.run(printed_command(left.err)).code, 0);
  EXPECT_EQ(world.run({"--json", "job-list"}).json().size(), 0U);
}

TEST_F(CommandLaunch, RanksOnTheCpuAreNoSurpriseIfTheDriverFindsNoGpu) {
  world.servers().add_program("nvidia-smi", "echo 'No devices were found'\nexit 6\n");
  const std::string warning =
      "nvidia-smi finds no GPU (nvidia-smi says: No devices were found): its ranks run on the CPU";
  const CommandResult result = launch({"--cmd", "true", "--nproc-per-node", "auto"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(warning));
  EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", "1"}).err, Not(HasSubstr(warning)));
}

TEST_F(CommandLaunch, RanksThatDoNotStartForOneReasonAreOneError) {
  EXPECT_EQ(launch({"--cmd", "true"}).code, 0);  // the programs are installed now
  // From now on no file can be written.
  world.servers().add_program("sh", "trap '' XFSZ\nulimit -f 0\nexec /bin/dash \"$@\"\n");
  const CommandResult result = launch({"--cmd", "sleep 1000", "--nproc-per-node", "4"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("error: a: jobs 3-6 were not started: cannot write in "),
                    HasSubstr("/.jobs: File too large\n hint: `remote check --server a` shows what is "
                              "wrong there\nerror: b: jobs 7-10 were not started: ")));
}

TEST_F(CommandLaunch, AServerThatRefusesHasStartedNothing) {
  fs::create_directories(world.there("b"));
  std::ofstream(world.there("b") / ".jobs") << "";
  const CommandResult result = launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "1"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("job 2 was not started"), HasSubstr("cannot write in "),
                                HasSubstr("the launch failed: none of its ranks is running\n"),
                                Not(HasSubstr("not known"))));
}

TEST_F(CommandLaunch, OneThatIsInterruptedBeforeItsStartSaysThatNothingRuns) {
  world.servers().add_program("nvidia-smi", "touch ~/asked\nexec sleep 1000\n");
  const auto running = world.start({"launch", "--cmd", "true"});
  until([&] { return std::filesystem::exists(world.servers().home("a") / "asked"); },
        "the look at the server");
  running->interrupt();
  EXPECT_THAT(running->wait(), Ends(130, "", "nothing was started\n"));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
}

TEST_F(CommandLaunch, WrongOptionsAreRefusedBeforeAnyServerIsAsked) {
  EXPECT_THAT(launch({}), Refused("remote launch: --cmd is required"));
  EXPECT_THAT(launch({"--cmd", " "}), Refused("launch: --cmd is empty"));
  for (const char* number : {"0", "-1", "many", "5000"}) {
    EXPECT_THAT(launch({"--cmd", "true", "--nproc-per-node", number}), Refused("wrong nproc_per_node"))
        << number;
  }
  EXPECT_THAT(launch({"--cmd", "true", "--master-port", "70000"}), Refused("--master-port"));
  EXPECT_THAT(launch({"--cmd", "true", "--launcher", "slurp"}), Refused("--launcher"));
  EXPECT_THAT(launch({"--cmd", "true", "--on-failure", "cry"}), Refused("--on-failure"));
  EXPECT_THAT(launch({"--cmd", "true", "--failure-grace", "-1"}), Refused("--failure-grace"));
  EXPECT_THAT(launch({"--cmd", "true", "--lost-after", "1"}), Refused("--lost-after"));
  EXPECT_THAT(launch({"--cmd", "true", "-e", "X"}), Refused("-e X"));
  EXPECT_THAT(world.run({"helper-torch-launch", "--cmd", "true", "--local-rank-arg"}),
              Refused("remote helper-torch-launch has no option --local-rank-arg"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandLaunch, WithoutOneOfItsServersNothingIsStarted) {
  world.cut_off({"b"});
  EXPECT_THAT(launch({"--cmd", "sleep 1000"}),
              Ends(1, "",
                   AllOf(StartsWith("error: b: "),
                         HasSubstr("error: nothing was started: a launch needs all of its servers\n hint: "
                                   "--server NAME chooses the servers\n"))));
  EXPECT_THAT(world.store().list().jobs, IsEmpty());
  EXPECT_EQ(launch({"--cmd", "true", "--server", "a", "--nproc-per-node", "1"}).code, 0);
}

TEST_F(CommandLaunch, WhenOneServerDoesNotStartItsRanksTheOthersAreEnded) {
  world.servers().set_faults({.before = 4});  // two requests for the state of the servers, then two starts
  const CommandResult result = launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "1"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("injected fault"),
                    HasSubstr("ending the ranks that may have started (--on-failure=leave keeps them)\n")));
  world.servers().set_faults({});
  EXPECT_THAT(world.run({"--json", "job-list"}), Ends(0, "[]\n", ""));
}

// As when a provider reclaims a machine: SIGTERM, and a while later the machine is gone.
TEST_F(CommandLaunch, AServerThatIsGoneAfterASigtermIsNamed) {
  ASSERT_EQ(launch({"--cmd", "[ $RANK != 1 ] || kill -TERM $$; exec sleep 1000", "--nproc-per-node", "1",
                    "--failure-grace", "0"})
                .code,
            0);
  until([&] { return world.run({"--json", "job-list"}).json().empty(); }, "the end of the ranks");
  const std::string gone =
      " and no longer answers: it may have been shut down, or taken back by its provider";
  EXPECT_THAT(world.run({"job-wait", "--launch", "last"}).err,
              AllOf(HasSubstr("rank 1 on b failed first (SIGTERM, "), Not(HasSubstr(gone))));
  world.cut_off({"b"});
  const CommandResult result = world.run({"job-wait", "--launch", "last"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 on b failed first (SIGTERM, "),
                                HasSubstr("hint: b has not reported since 20"), HasSubstr(gone)));
}

TEST_F(CommandLaunch, ShowNamesTheServerThatDoesNotAnswer) {
  ASSERT_EQ(launch({"--cmd", "exec sleep 1000", "--nproc-per-node", "1"}).code, 0);
  EXPECT_THAT(world.run({"show", "last"}).out, Not(HasSubstr("has not answered")));
  world.cut_off({"b"});
  EXPECT_THAT(world.run({"show", "last"}).out,
              AllOf(HasSubstr("b has not answered since 20"), Not(HasSubstr("a has not answered since 20"))));
}

// The end of --follow says the same.
TEST_F(CommandLaunch, ShowNamesTheServerThatWasGoneAtTheEnd) {
  ASSERT_EQ(launch({"--cmd", "[ $RANK != 1 ] || kill -TERM $$; exec sleep 1000", "--nproc-per-node", "1",
                    "--failure-grace", "0"})
                .code,
            0);
  until([&] { return world.run({"--json", "job-list"}).json().empty(); }, "the end of the ranks");
  ASSERT_EQ(world.run({"history"}).code, 0);
  const jobs::Store store = world.store();
  jobs::LaunchStore records(store);
  records.change(*world.stored(1).launch, [&](PastLaunch& record) { record.gone = true; });
  EXPECT_THAT(world.run({"show", "last"}).out,
              HasSubstr(": it may have been shut down, or taken back by its provider\n"));
}

TEST_F(CommandLaunch, AFileOfTheProjectWithoutItsPathIsNamed) {
  write_file_atomic(world.project() / "tool", "#!/bin/sh\n");
  std::filesystem::permissions(world.project() / "tool", std::filesystem::perms(0644));
  const std::vector<std::string> words = {"--server", "a",     "--nproc-per-node", "1", "--follow",
                                          "--cmd",    "tool x"};
  EXPECT_THAT(
      launch(words).err,
      HasSubstr(" hint: a file of the project is started with its path: --cmd './tool x'; and `chmod +x "
                "tool` here, then `remote rsync`\n"));
  std::filesystem::permissions(world.project() / "tool", std::filesystem::perms(0755));
  EXPECT_THAT(launch(words).err, HasSubstr(" is started with its path: --cmd './tool x'\n"));
}

// As in a container with the default of 64 MiB.
TEST_F(CommandLaunch, ADataLoaderThatDiesHasTheSizeOfTheSharedMemory) {
  ASSERT_EQ(launch({"--server", "a", "--nproc-per-node", "1", "--cmd",
                    "echo 'RuntimeError: DataLoader worker (pid(s) 42) exited unexpectedly' >&2; exit 1"})
                .code,
            0);
  const jobs::Store store = world.store();
  jobs::LaunchStore records(store);
  struct statvfs info {};
  ASSERT_EQ(::statvfs("/dev/shm", &info), 0);
  const bool is_small = info.f_blocks * info.f_frsize < (512U << 20U);
  records.change(*world.stored(1).launch, [&](PastLaunch& record) {
    auto& facts = record.beginning.servers.at(0).facts;
    const auto of_shm = [](const auto& fact) { return fact.first == "shm"; };
    EXPECT_EQ(std::ranges::count_if(facts, of_shm), is_small ? 1 : 0);
    std::erase_if(facts, of_shm);
    facts.emplace_back("shm", "64 MiB");
  });
  EXPECT_THAT(world.run({"job-wait", "--launch", "last"}).err,
              HasSubstr(" hint: /dev/shm of a has 64 MiB, which may be too little for the data loader: try "
                        "fewer workers"));
}

TEST_F(CommandLaunch, WaitingForALaunchJudgesIt) {
  ASSERT_EQ(launch({"--cmd", "[ $RANK != 1 ] || { echo the reason >&2; exit 5; }; exec sleep 1000",
                    "--nproc-per-node", "1", "--failure-grace", "0", "--tag", "mine"})
                .code,
            0);
  const CommandResult result = world.run({"job-wait", "--tag", "mine"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 on b failed first (exit 5, "),
                                HasSubstr("\n  the reason\n"), HasSubstr("1 other was ended after it\n")));
}

TEST_F(CommandLaunch, StacksAreOfTheNewestLaunchAndTheOddOneComesFirst) {
  for (const char* server : {"a", "b"}) {
    write_file_atomic(
        world.there(server) / "train.py",
        "import os, time\ndef load():\n    time.sleep(1000)\ndef reduce():\n    time.sleep(1000)\n"
        "load() if os.environ['RANK'] == '2' else reduce()\n");
  }
  world.job("a", "exec sleep 1000");
  ASSERT_EQ(
      launch({"--cmd", "exec /usr/bin/python3 train.py", "--nproc-per-node", "2", "--enable-stacks"}).code,
      0);
  CommandResult result;
  until(
      [&] {
        result = world.run({"job-stacks"});
        return result.code == 0 && result.out.find("\n  load (") != std::string::npos &&
               result.out.find("ranks 0-1, 3 (a, b):\n  reduce (") != std::string::npos;
      },
      "the stacks");
  EXPECT_THAT(result.out, StartsWith("rank 2 (b, job 4, pid "));
  EXPECT_THAT(result.lines().front(), ::testing::EndsWith(" is at a different place than the others:"));
}

TEST_F(CommandLaunch, VerifySyncRefusesServersThatHaveOtherCode) {
  write_file_atomic(world.project() / "train.py", "here\n");
  write_file_atomic(world.there("a") / "train.py", "here\n");
  write_file_atomic(world.there("b") / "train.py", "othr\n");
  EXPECT_THAT(
      launch({"--cmd", "true", "--nproc-per-node", "1", "--verify-sync"}),
      Ends(1, "",
           AllOf(StartsWith("b: differs from here:\n    train.py\n"),
                 HasSubstr(
                     "error: nothing was started: the project on the servers differs from the local copy"))));
  write_file_atomic(world.there("b") / "train.py", "here\n");
  EXPECT_EQ(launch({"--cmd", "true", "--nproc-per-node", "1", "--verify-sync"}).code, 0);
}

}  // namespace
}  // namespace remote::test
