// The texts of every command: a snapshot of its help, and the table in the README.

#include <CLI/App.hpp>

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "support/command_world.hpp"
#include "support/golden.hpp"
#include "support/job_journal.hpp"
#include "support/waiting.hpp"

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
  const std::filesystem::path file = std::filesystem::path(source_folder) / "README.md";
  std::string readme = read_file(file);
  const std::size_t begin = readme.find(table.substr(0, table.find('\n')));
  ASSERT_NE(begin, std::string::npos);
  const std::size_t length = readme.find("\n\n", begin) + 1 - begin;
  if (std::getenv("REMOTE_UPDATE_GOLDEN") != nullptr) {
    write_file_atomic(file, readme.replace(begin, length, table));
  } else {
    EXPECT_EQ(readme.substr(begin, length), table);
  }
}

// tests/unit/other_tools_test.cpp has all of them.
TEST(CommandWords, WhatOtherProgramsCallACommandIsAnsweredWithTheLine) {
  CommandWorld world;
  const std::pair<std::vector<std::string>, const char*> lines[] = {
      {{"ps"}, " job-list`; see `remote --help`"},
      {{"logs", "5", "-f"}, " job-tail 5 -f`"},
      {{"ssh", "root@a"}, " shell a`"},
      {{"exec", "-it", "a", "--", "nvidia-smi", "-L"}, " run --tty --server a -- nvidia-smi -L`"},
      {{"a", "ls"}, " run --server a -- ls`"},
      {{"sbatch", "job.sh"}, " job-run --server a -- bash job.sh`"},
      {{"torchrun", "--nnodes=2", "--rdzv-backend=c10d", "train.py"}, " torch-launch -- train.py`"},
      {{"accelerate", "launch", "train.py"}, " torch-launch -- train.py`"},
      {{"--quiet", "logs", "1"}, " --quiet job-tail 1`"},
      {{"logs", "a"}, "a job is named by its key"},
      {{"-V"}, "use `remote --version`"},
      {{"help", "logs"}, "use `remote job-tail`; remote --help lists them all"},
      {{"scontrol", "show", "job", "1"}, " show 1`"}};
  for (const auto& [words, line] : lines) {
    EXPECT_THAT(world.run(words), Refused(line)) << words.front();
  }
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

TEST(CommandWords, EachCommandAnswersTheHabitsOfItsUsers) {
  CommandWorld world;
  const std::pair<std::vector<std::string>, const char*> lines[] = {
      {{"shell", "a", "hostname"}, " run --server a -- hostname`"},
      {{"shell", "root@a"}, " shell a`"},
      {{"run", "a"}, " shell a` for a shell there; a command of this name goes after --"},
      {{"run", "root@a"}, " shell a` for a shell there"},
      {{"check", "--server", "root@a"}, "name it 'a'"},
      {{"shell", "-t", "a"}, "a shell has a terminal"},
      {{"shell", "-p", "22", "a"}, "`port` in configs.yaml"},
      {{"forward", "-L", "80:localhost:80", "a"}, "remote forward SERVER"},
      {{"rsync", "a"}, " rsync --server a`"},
      {{"rsync", "train.py"}, "hint: see `remote rsync --help`"},
      {{"history", "1"}, " show 1`"},
      {{"pull", "1", "out.txt"}, " job-pull 1 out.txt`"},
      {{"history", "--tag", "my", "run"}, "a value with blanks needs quotes"},
      {{"add", "ssh -p 22 ada@h"}, "the server's name comes first: remote add NAME 'ssh -p 22 ada@h'"},
      {{"torch-launch", "--gpus", "all", "--", "train.py"}, "leave it out"},
      {{"torch-launch", "--gpus", "A100:8", "--", "train.py"}, "write --gpus 8"},
      {{"launch", "-c", "two", "--", "true"}, "--server NAME names the servers"},
      {{"run", "--rm", "ls"}, "runs in no container"},
      {{"status", "a"}, " servers --server a`"},
      {{"shell", "--server", "a"}, "remote shell SERVER"},
      {{"status", "last"}, " job-list last`"},
      {{"status", "-a"}, "`remote job-list` has it"},
      {{"job-list", "-n", "5"}, "--stopped lists all"},
      {{"job-list", "-o", "wide"}, "--json"},
      {{"job-list", "node-1"}, "no job 'node-1'"},
      {{"job-kill", "--server", "a"}, "by their keys, --launch or --tag"},
      {{"job-kill", "-f", "1"}, "--signal KILL"},
      {{"job-clean", "--force"}, "--yes"},
      {{"job-wait", "--all"}, "leave it out"},
      {{"job-pull", "a:out.txt"}, "remote job-pull KEY PATH --to DIR"},
      {{"job-pull", "1", "out.txt", "."}, "named by --to ."},
      {{"top", "-n", "1"}, "--once"},
      {{"run", "-n", "2", "hostname"}, "`remote torch-launch`"},
      {{"run", "-it", "bash"}, "--tty"},
      {{"run", "-H", "a", "hostname"}, "--server NAME"},
      {{"run", "--server", "all", "hostname"}, "'*' is all of them"},
      {{"prepare", "--all"}, "without --server"},
      {{"rsync", "-avz"}, "leave it out"},
      {{"launch", "-f", "--", "true"}, "--follow"},
      {{"launch", "-wd", "sub", "--", "true"}, "--workdir DIR"}};
  for (const auto& [words, line] : lines) {
    EXPECT_THAT(world.run(words), Refused(line)) << words[0] << ' ' << words[1];
  }
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandWords, LastIsTheNewestJobWhereverAKeyStands) {
  CommandWorld world;
  const Job first = world.ended_job("a", "echo one");
  const Job second = world.ended_job("b", "echo two; exit 3");
  EXPECT_EQ(world.run({"job-tail", "last", "-f", "-n", "5"}).out, "two\n");
  EXPECT_EQ(world.run({"job-tail", "--job", "last", "--no-follow"}).out, "two\n");
  EXPECT_EQ(world.run({"job-wait", "last"}).code, 1);
  EXPECT_EQ(world.run({"job-wait", "1", "--since", "1"}).code, 0);
  EXPECT_THAT(world.run({"job-list", "last"}).out, AllOf(HasSubstr("echo two"), Not(HasSubstr("echo one"))));
  EXPECT_THAT(world.run({"job-list", "1"}).out, AllOf(HasSubstr("echo one"), Not(HasSubstr("echo two"))));
  EXPECT_THAT(world.run({"job-rsync", "last"}).err, HasSubstr("the output of 1 job is in"));
  EXPECT_THAT(world.run({"job-kill", "-9", "last"}).out, HasSubstr("job 2 on b: had ended before"));
  EXPECT_THAT(world.run({"job-kill", "-KILL", "1"}).out, HasSubstr("job 1 on a: had ended before"));
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
  // even before anything has asked whether they ended
  const Job unknown = world.job("a", "exit 1", {"--tag", "new"});
  until([&] { return test::has_ended(world.there("a") / ".jobs" / unknown.id.text()); }, "its end");
  world.job("a", "true", {"--tag", "new"});
  EXPECT_THAT(world.run({"job-wait", "--tag", "new"}).err,
              HasSubstr("--since last waits only for the newest"));
}

TEST(CommandWords, ALauncherIsNotStartedOnceForEveryRank) {
  CommandWorld world;
  for (const char* line : {"torchrun train.py",
                           "accelerate launch train.py",
                           "python3 -m torch.distributed.run train.py",
                           "deepspeed train.py",
                           "X=1 mpirun -n 2 ./a.out",
                           "srun ./a.out",
                           "lightning run train.py",
                           "cd sub && torchrun train.py",
                           "bash -c 'torchrun train.py'",
                           "time torchrun train.py",
                           "uv run torchrun train.py",
                           "python -u -m torch.distributed.run train.py",
                           "conda run -n x torchrun train.py",
                           "conda run --no-capture-output --name x accelerate launch train.py",
                           "uv run --with torch torchrun train.py",
                           "poetry run accelerate launch train.py",
                           "env A=b torchrun train.py",
                           "uv run -m torch.distributed.run train.py",
                           "env -u A nice -n 5 torchrun train.py",
                           "python -W ignore -m torch.distributed.run train.py"}) {
    EXPECT_THAT(world.run({"torch-launch", "--nproc-per-node", "2", "--dry-run", "--cmd", line}),
                Refused("starts ranks itself, and would run once for every rank"))
        << line;
    const CommandResult once = world.run({"launch", "--dry-run", "--cmd", line});
    EXPECT_EQ(once.code, 0) << "once on each server: " << line;
    EXPECT_THAT(once.err, HasSubstr("starts ranks itself, and runs once on each server; `remote launch "))
        << line;
    EXPECT_THAT(world.run({"launch", "--nproc-per-node", "1", "--dry-run", "--cmd", line}).err,
                Not(HasSubstr("starts ranks itself")))
        << line;
  }
  for (const char* line :
       {"echo torchrun", "python grep.py torchrun", "conda run -n deepspeed python train.py",
        "uv run --with deepspeed train.py", "conda run"}) {
    EXPECT_EQ(world.run({"launch", "--nproc-per-node", "2", "--dry-run", "--cmd", line}).code, 0) << line;
  }
  EXPECT_THAT(world.run({"torch-launch", "--dry-run", "--cmd", "torchrun train.py"}),
              Refused("`remote torch-launch --launcher torchrun -- train.py`"));
}

TEST(CommandWords, SlurmIsAServersSettingAndNoLauncher) {
  CommandWorld world;
  EXPECT_THAT(world.run({"launch", "--launcher", "slurm", "--", "true"}),
              Refused("`scheduler: slurm` in configs.yaml"));
  EXPECT_THAT(world.run({"launch", "--launcher", "other", "--", "true"}), Refused("ranks,torchrun,mpi"));
}

TEST(CommandWords, ALineBehindTheDashesIsPointedToCmd) {
  CommandWorld world;
  const CommandResult result = world.run({"run", "--server", "a", "--", "echo $RANK; sleep 1"});
  EXPECT_EQ(result.code, 127);
  EXPECT_THAT(result.err, HasSubstr("a line for the shell goes to --cmd, without the --"));
  EXPECT_THAT(world.run({"run", "--silent", "echo $RANK; sleep 1", "--server", "a"}).err,
              HasSubstr("a line for the shell goes to --cmd, and options go before the command"));
}

}  // namespace
}  // namespace remote::test
