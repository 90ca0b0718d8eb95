// What every command says of itself: its help, as a snapshot a command, and the README's table.

#include <CLI/App.hpp>

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "support/command_world.hpp"
#include "support/golden.hpp"

namespace remote::test {
namespace {

TEST(CommandWords, TheHelpOfEachCommandIsItsSnapshot) {
  CommandWorld world;
  for (const cli::Command& command : cli::all_commands()) {
    const std::string name(command.name);
    expect_golden("help/" + name + ".txt", world.run({"help", name}).out);
  }
  expect_golden("help/remote.txt", world.run({"--help"}).out);
}

TEST(CommandWords, TheReadmeHasTheSameTable) {
  std::string table = "| command | what it does |\n|---|---|\n";
  for (const cli::Command& command : cli::all_commands()) {
    table += "| `" + std::string(command.name) + "` | " + std::string(command.about) + " |\n";
  }
  EXPECT_THAT(read_file(std::filesystem::path(source_folder) / "README.md"), HasSubstr(table));
}

TEST(CommandWords, WhatOtherProgramsCallACommandIsAnsweredWithTheLine) {
  CommandWorld world;
  const std::pair<std::vector<std::string>, const char*> lines[] = {
      {{"ps"}, "job-list"},
      {{"logs", "5", "-f"}, "job-tail 5 -f"},
      {{"tail", "-n", "5"}, "job-tail -n 5"},
      {{"kill", "last"}, "job-kill last"},
      {{"ls", "-a"}, "job-list -a"},
      {{"ssh", "a"}, "shell a"},
      {{"exec", "hostname"}, "run hostname"},
      {{"start", "--cmd", "sleep 1"}, "job-run --cmd 'sleep 1'"},
      {{"pull", "3", "out/"}, "job-pull 3 out/"},
      {{"cp", "3", "out/"}, "job-pull 3 out/"}};
  for (const auto& [words, line] : lines) {
    EXPECT_THAT(world.run(words), Refused(line)) << words.front();
  }
  EXPECT_THAT(world.run({"rerun", "3"}), Refused("give the command line again"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandWords, OptionsOfOtherProgramsAreTakenOrAnswered) {
  CommandWorld world;
  const auto refused = [&](std::vector<std::string> option, const char* words) {
    option.insert(option.begin(), "torch-launch");
    option.insert(option.end(), {"--", "train.py"});
    EXPECT_THAT(world.run(option), Refused(words)) << option[1];
  };
  refused({"-np", "2"}, "no option -np\n hint: --nproc-per-node N says");
  refused({"-bind-to", "none"}, "no option -bind-to\n hint: leave it out");
  refused({"-map-by", "slot"}, "no option -map-by\n hint: leave it out");
  refused({"--num_processes", "4"}, "--nproc-per-node N says");
  const auto ranks = [&](std::vector<std::string> option) {
    option.insert(option.begin(), {"launch", "--dry-run", "--json"});
    option.insert(option.end(), {"--", "true"});
    return world.run(option).json()["world_size"].get<int>();
  };
  EXPECT_EQ(ranks({"--nproc", "2"}), 4);
  EXPECT_GE(ranks({"--nproc_per_node=cpu"}), 2);
  EXPECT_EQ(world.run({"job-list", "-a", "--offline"}).code, 0);
}

TEST(CommandWords, LastIsTheNewestJobWhereverAKeyStands) {
  CommandWorld world;
  const Job first = world.ended_job("a", "echo one");
  const Job second = world.ended_job("b", "echo two; exit 3");
  EXPECT_EQ(world.run({"job-tail", "last", "-f", "-n", "5"}).out, "two\n");
  EXPECT_EQ(world.run({"job-tail", "--job", "last", "--no-follow"}).out, "two\n");
  EXPECT_EQ(world.run({"job-wait", "last"}).code, 1);
  EXPECT_EQ(world.run({"job-wait", "1", "--since", "1"}).code, 0);
  const auto failed = world.run({"job-list", "--failed", "--json"}).json();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0]["key"], second.key);
  EXPECT_LT(first.key, second.key);
}

TEST(CommandWords, ARetryLoopWaitsForTheNewestOfATag) {
  CommandWorld world;
  world.ended_job("a", "exit 1", {"--tag", "try"});
  world.ended_job("a", "true", {"--tag", "try"});
  EXPECT_THAT(world.run({"job-wait", "--tag", "try"}),
              AllOf(::testing::Field("code", &CommandResult::code, 1),
                    ::testing::Field("err", &CommandResult::err, HasSubstr("--since last"))));
  EXPECT_EQ(world.run({"job-wait", "--tag", "try", "--since", "last"}).code, 0);
}

TEST(CommandWords, ALauncherIsNotStartedOnceForEveryRank) {
  CommandWorld world;
  for (const char* line :
       {"torchrun train.py", "accelerate launch train.py", "python3 -m torch.distributed.run train.py",
        "deepspeed train.py", "X=1 mpirun -n 2 ./a.out", "srun ./a.out", "lightning run train.py"}) {
    EXPECT_THAT(world.run({"torch-launch", "--nproc-per-node", "2", "--dry-run", "--cmd", line}),
                Refused("starts ranks itself, and would run once for every rank"))
        << line;
    EXPECT_EQ(world.run({"launch", "--dry-run", "--cmd", line}).code, 0) << "once on each server: " << line;
  }
  EXPECT_THAT(world.run({"torch-launch", "--dry-run", "--cmd", "torchrun train.py"}),
              Refused("`remote torch-launch --launcher torchrun -- train.py`"));
}

TEST(CommandWords, ALineBehindTheDashesIsPointedToCmd) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--server", "a", "--", "echo $RANK; sleep 1"});
  EXPECT_EQ(result.code, 127);
  EXPECT_THAT(result.err, HasSubstr("a line for the shell goes to --cmd, without the --"));
}

}  // namespace
}  // namespace remote::test
