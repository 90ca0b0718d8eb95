// The forms of a command line: commands as separate arguments, variables, lists of servers, and `launch:` in
// configs.yaml.

#include <fstream>

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

constexpr const char* servers =
    "name: proj\npython: {manager: system}\nservers:\n"
    "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n";

class CommandForms : public ::testing::Test {
 protected:
  CommandForms() { world.configure(servers); }
  nlohmann::json plan(std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"--dry-run", "--json"});
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 0) << result;
    return result.code == 0 ? result.json() : nlohmann::json();
  }
  CommandWorld world;
};

TEST_F(CommandForms, WordsBehindTheOptionsAreTheCommand) {
  EXPECT_THAT(world.run({"run", "--server", "a", "echo", "$HOME", "a  b", "--server", "it's"}),
              Ends(0, "$HOME a  b --server it's\n", HasSubstr("--server behind echo is given to echo")));
  EXPECT_THAT(world.run({"run", "--server=a", "--", "printf", "%s|", "-x", "", "*"}), Ends(0, "-x||*|", ""));
  // A single argument is a shell command line, as with ssh; after "--" it is a plain argument.
  EXPECT_THAT(world.run({"run", "--server", "a", "echo $((1 + 1))"}), Ends(0, "2\n", ""));
  EXPECT_EQ(world.run({"run", "--server", "a", "--", "echo 1"}).code, 127);
  const CommandResult job = world.run({"job-run", "--server", "a", "--follow", "--", "echo", "a  b"});
  EXPECT_THAT(job.out, HasSubstr("a  b\n"));
  EXPECT_EQ(world.stored(1).command, "echo 'a  b'");
}

TEST_F(CommandForms, ALaunchTakesWordsToo) {
  const auto command = [&](const std::vector<std::string>& words) {
    return plan(words)["processes"].at(0)["command"].get<std::string>();
  };
  EXPECT_EQ(command({"torch-launch", "--", "python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
  EXPECT_EQ(command({"torch-launch", "--nproc_per_node", "1", "train.py", "a b"}), "python train.py 'a b'");
  EXPECT_EQ(command({"launch", "./a.out", "x"}), "./a.out x");
  EXPECT_EQ(command({"helper-torch-launch", "--python-cmd", "mnist.py"}), "python mnist.py --local_rank=0");
}

TEST_F(CommandForms, AWordBeforeTheMarkIsNotTakenForTheCommand) {
  for (const char* command : {"torch-launch", "launch", "helper-torch-launch", "job-run"}) {
    EXPECT_THAT(world.run({command, "nothing", "--dry-run", "--", "train.py"}),
                Refused("'nothing' is in the place of the command"));
    EXPECT_THAT(world.run({command, "--server", "a", "b", "--", "train.py"}),
                Refused("it is a server's name"));
    for (const std::string name : {"my.exp", "b.1", "lr/1"}) {
      EXPECT_THAT(world.run({command, name, "--dry-run", "--", "train.py"}),
                  Refused("'" + name + "' is in the place of the command"));
    }
  }
  EXPECT_THAT(world.run({"launch", "--workdir", "sub", "my.exp", "--dry-run", "--", "train.py"}),
              Refused("'my.exp' is in the place of the command"));
  EXPECT_THAT(world.run({"sweep", "--param", "lr=1", "nothing", "--", "train.py"}),
              Refused("'nothing' is in the place of the command"));
  EXPECT_THAT(world.run({"run", "--server", "a", "b", "--", "true"}),
              Refused(" run --server a --server b -- true`"));
  EXPECT_THAT(world.run({"run", "a,b", "--", "true"}), Refused("it is a server's name"));
  EXPECT_THAT(world.run({"run", "--server", "a", "b", "true"}), Refused("it is a server's name"));
  EXPECT_THAT(world.run({"run", "root@a:", "ls", "-l"}), Refused(" run --server a -- ls -l`"));
  EXPECT_THAT(world.run({"job-run", "a", "ls"}), Refused(" job-run --server a -- ls`"));
  EXPECT_THAT(world.run({"launch", "--dry-run", "task.yaml"}), Refused("settings are not a program"));
  EXPECT_EQ(world.servers().commands(), 0);
  // A command may have its own "--", and the name of a server after the "--".
  EXPECT_THAT(world.run({"run", "--server", "a", "printf", "--", "%s\n", "x"}), Ends(0, "x\n", ""));
  EXPECT_EQ(world.run({"run", "--server", "a", "--", "b", "--", "true"}).code, 127);
  EXPECT_EQ(plan({"launch", "./a.out", "--", "x"})["processes"].at(0)["command"], "./a.out -- x");
  make_folders(world.project() / "tools/more");
  write_file_atomic(world.project() / "tools/a.sh", "true\n");
  write_file_atomic(world.project() / "tools/more/b.sh", "true\n");
  EXPECT_EQ(plan({"launch", "tools/a.sh", "--", "x"})["processes"].at(0)["command"], "tools/a.sh -- x");
  EXPECT_EQ(plan({"launch", "--workdir", "tools", "more/b.sh", "--", "x"})["processes"].at(0)["command"],
            "more/b.sh -- x");
}

TEST_F(CommandForms, ACommandIsGivenOnceAndNotEmpty) {
  EXPECT_THAT(world.run({"run", "--cmd", "true", "hostname"}), Refused("both --cmd and a command"));
  EXPECT_THAT(world.run({"run", "--"}), Refused("the command is empty"));
  EXPECT_THAT(world.run({"run", ""}), Refused("the command is empty"));
  EXPECT_THAT(world.run({"launch"}), Refused("remote launch: --cmd is required"));
  EXPECT_THAT(world.run({"launch", "--env", "FOO", "./a"}), Refused("'./a' is the value of FOO"));
  EXPECT_THAT(world.run({"status", "--", "x"}), Refused("remote status takes no 'x'"));
  EXPECT_THAT(world.run({"run", "--srever", "a", "true"}), Refused("did you mean '--server'?"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandForms, ALineWithoutQuotesIsRefusedWithTheWholeLine) {
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "df", "-h"}),
              Refused(" run --server a --cmd 'df -h'`"));
  EXPECT_THAT(world.run({"job-run", "--server", "a", "--cmd", "df", "-h"}),
              Refused(" job-run --server a --cmd 'df -h'`"));
  EXPECT_THAT(world.run({"torch-launch", "--cmd", "train.py", "--lr", "0.1"}),
              Refused(" torch-launch --cmd 'train.py --lr 0.1'`"));
  EXPECT_THAT(
      world.run({"torch-launch", "--cmd", "python", "train.py", "--epochs", "3", "--nproc-per-node", "2"}),
      Refused(" torch-launch --nproc-per-node 2 --cmd 'python train.py --epochs 3'`"));
  EXPECT_THAT(
      world.run({"run", "--cmd", "python3", "--version"}),
      AllOf(Refused("remote run: --cmd takes one word\n hint: put the whole line in quotes: `remote "),
            Refused(" run --cmd 'python3 --version'`")));
  EXPECT_THAT(world.run({"torch-launch", "--cmd", "train.py", "--help"}), Refused("'train.py --help'`"));
  EXPECT_THAT(world.run({"run", "--cmd", "--", "ls", "-l"}), Refused(" run --cmd 'ls -l'`"));
  EXPECT_THAT(world.run({"run", "--cmd=ls", "-l"}), Refused(" run --cmd 'ls -l'`"));
  EXPECT_THAT(world.run({"launch", "--cmd", "echo a", "b"}), Refused(" launch --cmd 'echo a b'`"));
  EXPECT_THAT(world.run({"run", "--cmd", "ls -l", "--sevrer", "a"}), Refused("did you mean '--server'?"));
  EXPECT_THAT(world.run({"run", "--cmd", "python3 x.py", "--lr", "1"}),
              Refused("--cmd 'python3 x.py --lr 1'`"));
  EXPECT_THAT(world.run({"sweep", "--cmd", "train.py", "lr=1,2"}),
              Refused(" sweep --param 'lr=1,2' --cmd train.py`"));
  EXPECT_THAT(world.run({"launch", "--cmd", "a b", "-h"}), Ends(0, HasSubstr("Usage: remote launch"), ""));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandForms, AnOptionBeforeItsCommandIsNamed) {
  EXPECT_THAT(world.run({"--server", "a", "run", "ls"}),
              AllOf(Refused("--server comes before the command\n hint: write `remote run "),
                    Refused(" --server a ls`")));
  EXPECT_THAT(world.run({"--follow", "torch-launch", "--", "train.py"}),
              AllOf(Refused("write `remote torch-launch "), Refused(" --follow -- train.py`")));
}

TEST_F(CommandForms, OptionsBehindTheProgramAreSaidToBeTheProgramsOwn) {
  const auto warning = [&](const std::vector<std::string>& words) { return world.run(words).err; };
  EXPECT_THAT(
      warning({"run", "--server", "a", "echo", "x", "--silent", "--server=a"}),
      HasSubstr("--silent, --server behind echo are given to echo; put options of `remote run` before"));
  EXPECT_THAT(warning({"run", "--server", "a", "echo", "x", "--silent", "--server=a"}),
              HasSubstr(" run --server a --silent --server=a -- echo x`"));
  EXPECT_THAT(warning({"sweep", "train.py", "--param", "lr=1,2"}),
              HasSubstr(" sweep --param 'lr=1,2' -- train.py`"));
  EXPECT_THAT(world.run({"job-run", "train.py", "--server", "a"}),
              AllOf(Refused("--server is required"), Refused(" job-run --server a -- train.py`")));
  EXPECT_THAT(warning({"torch-launch", "train.py", "--dry-run"}),
              HasSubstr("--dry-run behind train.py is given to train.py"));
  EXPECT_THAT(warning({"torch-launch", "--dry-run", "--", "train.py", "--nproc_per_node=2"}),
              HasSubstr("--nproc-per-node behind train.py is given to train.py"));
  EXPECT_THAT(warning({"torch-launch", "--dry-run", "--", "train.py", "--follow"}),
              Not(HasSubstr("is given to")));
}

TEST_F(CommandForms, AnOperatorAsAWordIsNamedWithTheLineInQuotes) {
  EXPECT_THAT(world.run({"torch-launch", "--dry-run", "--", "cd", "my sub", "&&", "train.py"}).err,
              HasSubstr("'&&' is given to cd as an argument; a line for the shell is one word: --cmd 'cd "
                        "'\\''my sub'\\'' && python train.py'"));
  EXPECT_THAT(world.run({"run", "--server", "a", "--", "nohup", "true", "&"}).err,
              HasSubstr("'&' is given to nohup as an argument"));
  EXPECT_EQ(world.run({"run", "--server", "a", "--", "true", "&&x", ";"}).err, "");
}

TEST_F(CommandForms, ACommandInTheBackgroundIsNamedBeforeTheStart) {
  EXPECT_THAT(world.run({"run", "--server", "a", "--cmd", "nohup true >/dev/null 2>&1 &"}).err,
              HasSubstr("`remote job-run` starts what outlives the connection"));
  EXPECT_THAT(world.run({"torch-launch", "--dry-run", "--cmd", "nohup python3 train.py &"}).err,
              HasSubstr("a job outlives the connection without `&`"));
  EXPECT_THAT(world.run({"torch-launch", "-d", "--", "train.py"}), Refused("a job outlives the connection"));
}

TEST_F(CommandForms, AVariableIsNoProgram) {
  EXPECT_THAT(world.run({"torch-launch", "--", "FOO=a b", "python3", "train.py"}),
              Refused(" torch-launch -e 'FOO=a b' -- python3 train.py`"));
  EXPECT_THAT(world.run({"torch-launch", "--gpus", "1", "--follow", "--", "A=1", "B=2", "train.py"}),
              Refused(" torch-launch --gpus 1 --follow -e 'A=1' -e 'B=2' -- train.py`"));
  EXPECT_THAT(world.run({"sweep", "lr=1,2", "--", "python3", "train.py"}),
              Refused(" sweep --param 'lr=1,2' -- python3 train.py`"));
}

TEST_F(CommandForms, AScriptThatNoPythonStartsIsNamedBeforeTheStart) {
  EXPECT_THAT(world.run({"torch-launch", "--dry-run", "--cmd", "cd sub && train.py"}).err,
              HasSubstr("write --cmd 'cd sub && python train.py'"));
  EXPECT_EQ(world.run({"torch-launch", "--dry-run", "--cmd", "train.py"}).err, "");
}

TEST_F(CommandForms, AScriptThatStartsRanksItselfIsNamed) {
  std::ofstream(world.project() / "train.sh")
      << "#!/bin/bash\n# torchrun is used\ntorchrun --nproc_per_node=2 main.py\n";
  EXPECT_THAT(world.run({"launch", "--dry-run", "--", "bash", "train.sh"}).err,
              HasSubstr("train.sh starts torchrun itself, once on each server"));
  EXPECT_THAT(
      world.run({"torch-launch", "--nproc-per-node", "2", "--dry-run", "--", "bash", "train.sh"}).err,
      AllOf(HasSubstr("once for every rank of this launch"), HasSubstr("`remote torch-launch -- main.py`")));
  std::ofstream(world.project() / "train.sh") << "torchrun --node_rank $NODE_RANK train.py\n";
  EXPECT_THAT(world.run({"launch", "--dry-run", "--", "bash", "train.sh"}).err, Not(HasSubstr("torchrun")));
}

TEST_F(CommandForms, AMakefileThatStartsRanksIsNamed) {
  std::ofstream(world.project() / "Makefile") << "train:\n\ttorchrun main.py\n";
  EXPECT_THAT(world.run({"launch", "--dry-run", "--", "make", "train"}).err,
              HasSubstr("make train starts torchrun itself, once on each server"));
}

TEST_F(CommandForms, AFailureWithAKnownRemedyHasAHint) {
  const CommandResult result =
      world.run({"run", "--server", "a", "--cmd", "echo 'EOFError: EOF when reading a line' >&2; exit 1"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("\n hint: there is no terminal to type on"));
}

TEST_F(CommandForms, OptionsOfGuidesAreAnsweredWithWhatToUseHere) {
  const std::pair<const char*, const char*> options[] = {
      {"--rdzv_endpoint=a:29400", "its own rendezvous"},
      {"--rdzv_id", "its own rendezvous"},
      {"--node_rank=0", "every server of a launch is given its own"},
      {"--master_addr", "-e MASTER_ADDR=ADDRESS"},
      {"-np", "--nproc-per-node N"},
      {"-x", "-e NAME=VALUE"},
      {"--mca", "-e OMPI_MCA_NAME=VALUE"},
      {"--gres=gpu:4", "--gpus-per-node, and --sbatch"}};
  for (const char* command : {"torch-launch", "launch", "helper-torch-launch"}) {
    for (const auto& [option, hint] : options) {
      EXPECT_THAT(world.run({command, option, "4", "--", "train.py"}), Refused(hint)) << option;
    }
  }
  EXPECT_THAT(world.run({"job-run", "-np", "4", "--", "train.py"}), Not(Refused("--nproc-per-node")));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandForms, AModuleAsAnOptionIsAnsweredWithTheWholeLine) {
  EXPECT_THAT(world.run({"torch-launch", "--server", "a", "-m", "scripts.train", "--lr", "1",
                         "--nproc-per-node", "2"}),
              Refused(" torch-launch --server a --nproc-per-node 2 -- -m scripts.train --lr 1`"));
  EXPECT_EQ(plan({"torch-launch", "--server", "a", "--nproc-per-node", "2", "--", "-m", "scripts.train",
                  "--lr", "1"})["processes"]
                .at(0)["command"],
            "python -m scripts.train --lr 1");
}

TEST_F(CommandForms, ValuesWithoutAParameterAreAnsweredWithTheWholeLine) {
  EXPECT_THAT(world.run({"sweep", "--server", "a", "--", "python3", "x.py", "--lr", "0.1,0.2"}),
              Refused(" sweep --server a --param 'lr=0.1,0.2' -- python3 x.py --lr '{lr}'`"));
  EXPECT_THAT(world.run({"sweep", "--", "x.py", "--batch-size=1,2", "--seed", "3"}),
              Refused(" sweep --param 'batch_size=1,2' -- x.py '--batch-size={batch_size}' --seed 3`"));
}

TEST_F(CommandForms, SeveralVariablesInOneWordAreNamed) {
  const CommandResult result = world.run({"run", "--server", "a", "-e", "A=1,B=2", "--", "printenv", "A"});
  EXPECT_EQ(result.out, "1,B=2\n");
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("the value of A is '1,B=2': each variable needs its own -e: `remote "),
                    HasSubstr(" run --server a -e 'A=1' -e 'B=2' -- printenv A`")));
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"-e", "A=1,API_KEY=hunter2"},
           {"-e", "A=1,B=2", "--env", "API_KEY", "hunter2"},
           {"-e", "A=1,B=2", "--env", "API_KEY=hunter2"},
       }) {
    std::vector<std::string> line{"run", "--server", "a"};
    line.insert(line.end(), more.begin(), more.end());
    line.insert(line.end(), {"--cmd", "true --password hunter2"});
    EXPECT_THAT(world.run(line).err, AllOf(HasSubstr("each variable needs its own -e: `remote "),
                                           HasSubstr(" -e 'A=1' "), Not(HasSubstr("hunter2"))));
  }
  for (const char* one : {"A=1,2", "A=x,b=2", "A=size:64,threshold:0.8", "A=--x=1,2=3"}) {
    EXPECT_THAT(world.run({"run", "--server", "a", "-e", one, "--cmd", "true"}), Ends(0, "", "")) << one;
  }
}

TEST_F(CommandForms, AFlagOfRemoteBehindTheProgramIsNamed) {
  for (const char* command : {"run", "job-run"}) {
    EXPECT_THAT(
        world.run({command, "--server", "a", "--cmd", "echo", "-v"}).err,
        HasSubstr("-v is taken as an option of `remote` itself; for the program, write --cmd 'echo -v'"));
    EXPECT_THAT(world.run({command, "--server", "a", "--cmd", "echo x", "-v"}).err,
                Not(HasSubstr("is taken as an option")));
  }
}

TEST_F(CommandForms, TorchrunsSpellingsAreTaken) {
  const auto json =
      plan({"torch-launch", "--nproc_per_node=3", "--master_port", "29511", "--use_env", "x.py"});
  EXPECT_EQ(json["world_size"], 6);
  EXPECT_EQ(json["master_port"], 29511);
}

TEST_F(CommandForms, AVariableStandsInOneWordOrInTwo) {
  EXPECT_THAT(world.run({"run", "--server", "a", "--env", "X=1", "--env", "Y", "2=3", "--env=Z=4", "--cmd",
                         "echo $X $Y $Z"}),
              Ends(0, "1 2=3 4\n", ""));
}

TEST_F(CommandForms, ADollarStaysOneAndThatIsSaidOnce) {
  const CommandResult result = world.run(
      {"run", "--server", "a", "--env", "X", "$HOME/x", "--env", "Y", "${Z}", "--cmd", "echo \"$X $Y\""});
  EXPECT_THAT(result, Ends(0, "$HOME/x ${Z}\n",
                           "X is set to the text with its '$', which no shell expands (in --cmd the server's "
                           "shell does)\n"));
  EXPECT_THAT(world.run({"run", "--server", "a", "-e", "X=5$ $5", "--cmd", "true"}), Ends(0, "", ""));
}

TEST_F(CommandForms, ServersStandInAListToo) {
  const CommandResult both = world.run({"run", "--server", "b,a", "echo", "x"});
  EXPECT_THAT(both.lines(), UnorderedElementsAre("a | x", "b | x"));
  EXPECT_THAT(world.run({"run", "--server", "a, [c-z]", "echo", "x"}), Refused("no server '[c-z]'"));
  EXPECT_THAT(world.run({"rsync", "--server", "a,b"}).err, HasSubstr("2 servers synced"));
  EXPECT_THAT(world.run({"servers", "--server", "a,"}).lines().size(), ::testing::Gt(1U));
  EXPECT_THAT(world.run({"run", "--server", ",", "echo", "x"}), Refused("no server ','"));
  EXPECT_THAT(world.run({"job-run", "--server", "a,b", "--cmd", "true"}), Refused("more than one server"));
}

TEST_F(CommandForms, AJobGoesToTheOnlyServerElseItIsAsked) {
  EXPECT_THAT(world.run({"job-run", "--cmd", "true"}),
              Refused("remote job-run: --server is required: there are a, b"));
  const CommandResult asked = world.run({"job-run", "--cmd", "true"}, screen("b\n"));
  EXPECT_EQ(asked.code, 0) << asked;
  EXPECT_THAT(asked.err, HasSubstr("On which server (a, b)? "));
  EXPECT_EQ(world.stored(1).server, "b");
  world.configure("name: proj\npython: {manager: system}\nservers:\n  b: {hostname: b}\n");
  EXPECT_EQ(world.run({"job-run", "--cmd", "true"}).code, 0);
  EXPECT_EQ(world.stored(2).server, "b");
}

TEST_F(CommandForms, TheConfigurationSaysWhatALaunchDoes) {
  world.configure(std::string(servers) +
                  "launch:\n  cmd: train.py\n  nproc_per_node: 3\n  env: {A: conf, B: conf}\n  servers: b\n"
                  "  launcher: torchrun\n");
  const auto usual = plan({"torch-launch"});
  EXPECT_EQ(usual["launcher"], "torchrun");
  EXPECT_EQ(usual["world_size"], 3);
  ASSERT_EQ(usual["processes"].size(), 1U);
  EXPECT_EQ(usual["processes"][0]["server"], "b");
  EXPECT_EQ(usual["processes"][0]["env"]["A"], "conf");
  EXPECT_THAT(usual["processes"][0]["command"].get<std::string>(), ::testing::EndsWith(" train.py"));
  const auto other = plan({"torch-launch", "--launcher", "ranks", "--nproc-per-node", "1", "--server", "a",
                           "--env", "A", "line", "--cmd", "other.py"});
  EXPECT_EQ(other["launcher"], "ranks");
  ASSERT_EQ(other["processes"].size(), 1U);
  EXPECT_EQ(other["processes"][0]["server"], "a");
  EXPECT_EQ(other["processes"][0]["command"], "python other.py");
  EXPECT_EQ(other["processes"][0]["env"]["A"], "line");
  EXPECT_EQ(other["processes"][0]["env"]["B"], "conf");
}

TEST_F(CommandForms, TheConfigurationSaysHowTorchrunsAgentsMeet) {
  world.configure(
      std::string(servers) +
      "launch: {cmd: train.py, launcher: torchrun, rdzv: c10d, nnodes: '1:2', max_restarts: 4}\n");
  const auto command_of = [&](const std::vector<std::string>& words) {
    return plan(words)["processes"][0]["command"].get<std::string>();
  };
  EXPECT_THAT(command_of({"torch-launch"}),
              AllOf(HasSubstr("--nnodes=1:2 "), HasSubstr("--rdzv_backend=remote_c10d "),
                    HasSubstr("--max_restarts=4 ")));
  EXPECT_THAT(
      command_of({"torch-launch", "--rdzv-backend", "static", "--nnodes", "2", "--max-restarts", "0"}),
      AllOf(HasSubstr("--nnodes=2 "), HasSubstr("--master_port="), Not(HasSubstr("max_restarts"))));
  EXPECT_THAT(command_of({"torch-launch", "--launcher", "ranks"}), "python train.py");
}

TEST_F(CommandForms, TheConfigurationsFollowAndOnFailureGiveWayToTheCommandLine) {
  world.configure(std::string(servers) + "launch: {cmd: 'echo up', follow: true, on_failure: leave}\n");
  EXPECT_THAT(world.run({"launch"}).err, HasSubstr("all 2 ranks succeeded"));
  EXPECT_THAT(world.run({"launch", "--no-follow"}).err, Not(HasSubstr("succeeded")));
  const std::vector<std::string> failing = {"launch", "--cmd", "[ $RANK = 0 ] || exit 3; exec sleep 1000",
                                            "--no-follow"};
  EXPECT_EQ(world.run(failing).code, 0);
  const int rank_1 = world.store().list().jobs.back().key;
  EXPECT_EQ(world.run({"job-wait", "--job", std::to_string(rank_1)}).code, 1);
  EXPECT_EQ(world.stored(rank_1 - 1).state, JobState::running) << "leave";
  std::vector<std::string> killing = failing;
  killing.insert(killing.begin() + 1, {"--on-failure", "kill", "--failure-grace", "0"});
  EXPECT_EQ(world.run(killing).code, 0);
  EXPECT_EQ(world.run({"job-wait", "--job", std::to_string(rank_1 + 1)}).code, 1);
}

TEST_F(CommandForms, WhatIsWrongInTheConfigurationHasItsPlace) {
  const auto told = [&](const std::string& line) {
    world.configure(std::string(servers) + "launch:\n  cmd: x\n  " + line + "\n");
    return world.run({"launch", "--dry-run"});
  };
  EXPECT_THAT(told("launcher: slrum"),
              Refused("configs.yaml:8:13: 'launcher' must be ranks, torchrun or mpi"));
  EXPECT_THAT(told("nproc_per_node: many"), Refused("configs.yaml:8:19: 'nproc_per_node' must be"));
  EXPECT_THAT(told("servers: [a, c]"), Refused("configs.yaml:8:16: 'servers' names 'c'"));
  EXPECT_THAT(told("init_method: nfs"), Refused("configs.yaml:8:16: 'init_method' must be env, tcp or file"));
  EXPECT_THAT(told("on_failure: stop"), Refused("configs.yaml:8:15: 'on_failure' must be kill or leave"));
  EXPECT_THAT(told("rdzv: etcd"), Refused("configs.yaml:8:9: 'rdzv' must be static or c10d"));
  EXPECT_THAT(told("nnodes: 2:1"), Refused("configs.yaml:8:11: 'nnodes' must be MIN:MAX"));
  EXPECT_THAT(told("max_restarts: -1"), Refused("configs.yaml:8:17:"));
  EXPECT_THAT(told("restart_on: [exit, disk]"),
              Refused("'restart_on' takes exit, signal, oom, lost, hang or any"));
  EXPECT_THAT(told("hang_after: long"),
              Refused("configs.yaml:8:15: 'hang_after' must be a number of minutes"));
  EXPECT_THAT(told("on_hang: stop"), Refused("configs.yaml:8:12: 'on_hang' must be leave, kill or restart"));
  EXPECT_THAT(told("no_restart_exit: 300"), Refused("'no_restart_exit' takes exit codes from 1 to 255"));
  EXPECT_THAT(told("min_servers: 0"), Refused("configs.yaml:8:16:"));
  EXPECT_THAT(told("max_restarts: 1"), Refused("only the launcher torchrun"));
  EXPECT_THAT(told("follow: perhaps"), Refused("configs.yaml:8:11: 'follow' must be true or false"));
  EXPECT_THAT(told("env: {A-B: 1}"), Refused("configs.yaml:8:9:"));
  EXPECT_THAT(
      told("nproc-per-node: 1").err,
      HasSubstr("unknown key 'nproc-per-node' of 'launch' is ignored; did you mean 'nproc_per_node'?"));
}

TEST_F(CommandForms, HostsOfALaunchStandInAFileOrAList) {
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n"
      "  a: {hostname: host-a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: "
      "127.0.0.1}\n");
  const std::string file = (world.project() / "my hosts").string();
  write_file_atomic(file, "# two hosts\nb slots=2  # the first holds rank 0\n\nada@host-a:1 max_slots=4\n");
  const auto servers_of = [](const nlohmann::json& json) {
    std::vector<std::string> names;
    for (const auto& process : json["processes"]) {
      names.push_back(process["server"].get<std::string>());
    }
    return names;
  };
  EXPECT_THAT(servers_of(plan({"launch", "--hostfile", file, "true"})), ElementsAre("b", "b", "a"));
  EXPECT_THAT(servers_of(plan({"launch", "-H", "a:2,b:1", "true"})), ElementsAre("a", "a", "b"));
  EXPECT_THAT(servers_of(plan({"launch", "-H", "b,b,a,b", "true"})), ElementsAre("b", "b", "b", "a"));
  EXPECT_THAT(servers_of(plan({"launch", "-H", "b", "true"})), ElementsAre("b"));
  // With one line per rank, a host that is named once gets one rank, no matter how many processors it has.
  const std::string node_file = (world.project() / "nodes").string();
  write_file_atomic(node_file, "a\na\na\nb\n");
  EXPECT_THAT(servers_of(plan({"torch-launch", "--hostfile", node_file, "x.py"})),
              ElementsAre("a", "a", "a", "b"));
  EXPECT_THAT(servers_of(plan({"torch-launch", "-H", "a,a,a,b", "x.py"})), ElementsAre("a", "a", "a", "b"));
  EXPECT_THAT(servers_of(plan({"launch", "-H", "b:2", "--nproc-per-node", "1", "true"})), ElementsAre("b"));
  write_file_atomic(file, "a\nb slots=2\ngpu9\n");
  EXPECT_THAT(world.run({"launch", "--hostfile", file, "true"}),
              Refused("my hosts:3: 'gpu9' is not a server of configs.yaml\n hint: there are a (host-a), b"));
  EXPECT_THAT(world.run({"launch", "-H", "127.0.0.1:2", "true"}),
              Refused("'127.0.0.1' is the address of several servers\n hint: name the server as"));
  EXPECT_THAT(world.run({"launch", "-H", "a", "--server", "a", "true"}), Refused("excludes"));
  EXPECT_THAT(world.run({"launch", "--hostfile", "/nowhere", "true"}).code, ::testing::Ne(0));
}

TEST_F(CommandForms, IncludeAndExcludeChooseServersAndGpus) {
  world.servers().add_gpus(4);
  const auto gpus_of = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--cmd", "train.py"});
    words.insert(words.begin(), "torch-launch");
    std::string all;
    const nlohmann::json json = plan(words);
    for (const auto& process : json["processes"]) {
      const auto& env = process["env"];
      all += process["server"].get<std::string>() +
             (env.contains("CUDA_VISIBLE_DEVICES") ? env["CUDA_VISIBLE_DEVICES"].get<std::string>() : "") +
             " ";
    }
    return all;
  };
  EXPECT_EQ(gpus_of({"--include", "a:1@b:0,2"}), "a1 b0,2 b0,2 ");
  EXPECT_EQ(gpus_of({"--include", "b", "--nproc-per-node", "1"}), "b ");
  EXPECT_EQ(gpus_of({"--exclude", "a@b:0,1"}), "b2,3 b2,3 ");
  EXPECT_EQ(gpus_of({"-H", "b:2,a:2", "--exclude", "a:0"}), "b b a1 ");
  EXPECT_EQ(gpus_of({"--exclude", "a:3", "--nproc-per-node", "1"}), "a0,1,2 b ");
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--dry-run", "--cmd", "train.py"});
    words.insert(words.begin(), "torch-launch");
    return world.run(words);
  };
  EXPECT_THAT(refused({"--include", "a", "--exclude", "b"}), Refused("excludes"));
  EXPECT_THAT(refused({"--include", "a", "--server", "a"}), Refused("excludes"));
  EXPECT_THAT(refused({"--include", "a:7"}), Refused("--include a:7: there is no GPU 7 on a"));
  EXPECT_THAT(refused({"--include", "gpu9"}), Refused("'gpu9' is not a server of configs.yaml"));
  EXPECT_THAT(refused({"--include", "a:0", "--env", "CUDA_VISIBLE_DEVICES", "1"}), Refused("keep one"));
}

TEST_F(CommandForms, TheInitMethodMayStandInTheConfiguration) {
  const std::string folder = (world.project() / "a disk").string();
  std::filesystem::create_directories(folder);
  world.configure(std::string(servers) + "launch:\n  cmd: x\n  init_method: file\n  init_dir: " + folder +
                  "\n");
  const auto method = [&](const std::vector<std::string>& words) {
    const nlohmann::json env = plan(words)["processes"][0]["env"];
    return env.contains("INIT_METHOD") ? env["INIT_METHOD"].get<std::string>() : "";
  };
  EXPECT_THAT(method({"launch"}),
              ::testing::MatchesRegex("file://" + folder + "/\\.remote-init-[0-9a-f]+/store"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_THAT(method({"launch", "--init-method", "tcp"}), ::testing::StartsWith("tcp://"));
  EXPECT_EQ(method({"launch", "--init-method", "env"}), "");
  world.configure(std::string(servers) + "launch: {cmd: x, init_dir: '" + folder + "'}\n");
  EXPECT_THAT(method({"launch"}), ::testing::StartsWith("file://"));
  EXPECT_THAT(world.run({"launch", "--init-method", "tcp", "--init-dir", "x"}), Refused("--init-dir"));
  EXPECT_THAT(world.run({"launch", "--init-dir", folder + "/no"}).err, HasSubstr("there is no folder"));
}

TEST_F(CommandForms, MpirunLeavesNobodyToThemselves) {
  EXPECT_THAT(world.run({"launch", "--launcher", "mpi", "--on-failure", "leave", "true"}),
              Refused("mpirun ends the other ranks"));
}

TEST_F(CommandForms, MasterAddrAndRunUuidMayBeSet) {
  const auto env = plan({"launch", "--env", "MASTER_ADDR", "localhost", "--env", "RUN_UUID", "mine", "true"});
  EXPECT_EQ(env["master_addr"], "localhost");
  for (const auto& process : env["processes"]) {
    EXPECT_EQ(process["env"]["MASTER_ADDR"], "localhost");
    EXPECT_EQ(process["env"]["RUN_UUID"], "mine");
  }
  EXPECT_THAT(world.run({"launch", "--dry-run", "--env", "RANK", "1", "true"}),
              ::testing::Field(&CommandResult::code, 2));
}

TEST_F(CommandForms, StacksAreTheDefaultOfTorchLaunchAlone) {
  const auto path = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--quiet",
                                      more.front(),
                                      "--server",
                                      "a",
                                      "--nproc-per-node",
                                      "1",
                                      "--follow",
                                      "--cmd",
                                      "echo \"<$PYTHONPATH>\""};
    words.insert(words.end() - 2, more.begin() + 1, more.end());
    return world.run(words).out;
  };
  EXPECT_THAT(path({"torch-launch"}), HasSubstr("/.jobs/"));
  EXPECT_THAT(path({"torch-launch", "--no-stacks"}), Not(HasSubstr("/.jobs/")));
  EXPECT_THAT(path({"launch"}), Not(HasSubstr("/.jobs/")));
  EXPECT_THAT(path({"launch", "--enable-stacks"}), HasSubstr("/.jobs/"));
}

TEST_F(CommandForms, SilentShowsNothingAndKeepsTheCode) {
  EXPECT_THAT(world.run({"run", "--silent", "--server", "a", "--cmd", "echo x; echo y >&2; exit 3"}),
              Ends(3, "", ""));
}

TEST_F(CommandForms, ShowOutputNamesWhatIsDone) {
  write_file_atomic(world.project() / "train.py", "1");
  EXPECT_THAT(world.run({"rsync", "--server", "a", "--show-output"}).err, HasSubstr("a | train.py\n"));
  EXPECT_EQ(world.run({"job-rsync", "--show-output"}).code, 0);
}

TEST_F(CommandForms, AnAnswerMayComeThroughAPipe) {
  world.job("a", "exec sleep 1000");
  EXPECT_THAT(world.run({"job-kill"}, piped("n\n")).err, HasSubstr("nothing was ended"));
  const CommandResult killed = world.run({"job-kill"}, piped("y\n"));
  EXPECT_EQ(killed.code, 0) << killed;
  EXPECT_THAT(killed, Ends(0, "job 1 on a: killed\n", HasSubstr("End 1 unfinished job? [y/N] ")));
}

TEST_F(CommandForms, AQuestionIsAskedUntilItIsAnswered) {
  world.job("a", "exec sleep 1000");
  const auto asked = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("[y/N]", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  };
  const CommandResult kept = world.run({"job-kill"}, screen("nope\nx\nNO\n"));
  EXPECT_EQ(asked(kept.err), 3U) << kept;
  EXPECT_THAT(kept, Ends(1, "", AllOf(HasSubstr("Please answer y or n.\n"), HasSubstr("nothing was ended"))));
  EXPECT_THAT(world.run({"job-kill"}, screen("\n")).err, HasSubstr("nothing was ended"));
  EXPECT_THAT(world.run({"job-kill"}, screen("\x04")), Ends(1, "", HasSubstr("nothing was ended")));
  EXPECT_THAT(world.run({"job-kill"}, screen("yess\n\x04")), Ends(1, "", HasSubstr("nothing was ended")));
  EXPECT_THAT(world.run({"job-kill"}, piped("maybe\n")), Refused("add --yes"));
  const CommandResult killed = world.run({"job-kill"}, piped("yes please\n YES \n"));
  EXPECT_EQ(asked(killed.err), 2U);
  EXPECT_THAT(killed, Ends(0, "job 1 on a: killed\n", HasSubstr("ending 1 job")));
}

TEST_F(CommandForms, PropertiesOfAServerAreNobodysBusiness) {
  world.configure("name: proj\nservers:\n  a: {hostname: a, properties: {zone: [1, 2]}}\n");
  EXPECT_THAT(world.run({"job-list", "--offline"}), Ends(0, "", Not(HasSubstr("warning"))));
}

}  // namespace
}  // namespace remote::test
