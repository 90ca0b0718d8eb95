#include "launch/plan.hpp"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/command.hpp"
#include "base/files.hpp"
#include "base/first_script.hpp"
#include "base/json.hpp"
#include "cli/show/plan.hpp"
#include "launch/launchers.hpp"
#include "launch/tags.hpp"
#include "support/golden.hpp"

namespace remote::launch {
namespace {

using test::expect_golden;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LaunchSpec spec_of(const std::string& command) {
  LaunchSpec spec;
  spec.command = command;
  spec.master_addr = "10.0.0.1";
  spec.master_port = 20500;
  spec.run_id = "0123456789abcdef0123456789abcdef";
  spec.rendezvous_key = "fedcba";
  return spec;
}

Node node(const std::string& server, int nproc, std::optional<std::string> interface = {}) {
  Node made;
  made.server = server;
  made.nproc = nproc;
  made.interface = std::move(interface);
  return made;
}

const std::vector<Node> two{node("first-server", 2, "eth0"), node("second-server", 2, "ens5")};

std::string value_of(const PlannedProcess& process, const std::string& name) {
  std::string value = "(unset)";
  int times = 0;
  for (const Env* env : {&process.env, &process.defaults}) {
    for (const auto& [known, given] : *env) {
      if (known == name) {
        value = given;
        ++times;
      }
    }
  }
  EXPECT_LE(times, 1) << name;
  return value;
}

TEST(PlanGolden, TwoServersTwoRanks) {
  const Plan plan = make_plan(spec_of("python mnist.py"), two);
  expect_golden("plan_two_by_two.txt", cli::plan_text(plan));
  expect_golden("plan_two_by_two_json.txt", dump_json(cli::plan_json(plan)));
}

TEST(PlanGolden, SecretsUserValuesAndOddText) {
  LaunchSpec spec = spec_of("train.py --wandb-token s3cr3t --api_key=s3cr3t --data 'a b' \"$HOME\"");
  spec.env = {{"WANDB_API_KEY", "s3cr3t"},    {"OMP_NUM_THREADS", "4"}, {"NCCL_SOCKET_IFNAME", "ib0"},
              {"TEXT", "one\ntwo é \x1b[2J"}, {"TEXT2", "old"},         {"TEXT2", "new"}};
  spec.local_rank_arg = true;
  const std::vector<Node> nodes{node("a", 1), node("b", 3, "lo")};
  const std::string text = cli::plan_text(make_plan(spec, nodes));
  expect_golden("plan_secrets.txt", text);
  EXPECT_EQ(text.find("s3cr3t"), std::string::npos);
  EXPECT_EQ(dump_json(cli::plan_json(make_plan(spec, nodes))).find("s3cr3t"), std::string::npos);
}

TEST(PlanGolden, Containers) {
  std::vector<Node> nodes = two;
  Container container{ContainerEngine::podman,
                      "docker.io/pytorch/pytorch:2.4.0",
                      {"-v", "/data:/data", "--api-key", "s3cr3t"}};
  nodes[0].container = container;
  container.engine.reset();
  container.workdir = "experiments";
  container.args.clear();
  nodes[1].container = container;
  const Plan plan = make_plan(spec_of("train.py"), nodes);
  expect_golden("plan_containers.txt", cli::plan_text(plan));
  expect_golden("plan_containers_json.txt", dump_json(cli::plan_json(plan)));
  EXPECT_EQ((cli::plan_text(plan) + dump_json(cli::plan_json(plan))).find("s3cr3t"), std::string::npos);
}

TEST(PlanGolden, Torchrun) {
  LaunchSpec spec = spec_of("python train.py --epochs 2");
  spec.launcher = Launcher::torchrun;
  expect_golden("plan_torchrun.txt", cli::plan_text(make_plan(spec, two)));
  spec.torchrun.rendezvous = RendezvousMethod::c10d;
  expect_golden("plan_torchrun_c10d.txt", cli::plan_text(make_plan(spec, two)));
  spec.torchrun = {.nodes = NodeRange{1, 2}, .max_restarts = 3};
  expect_golden("plan_torchrun_elastic.txt", cli::plan_text(make_plan(spec, two)));
}

// Restarted processes get other numbers, so no command line may contain those of the first start.
TEST(Torchrun, WhatDiffersBetweenAttemptsStandsInVariables) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::torchrun;
  spec.restarts = true;
  const PlannedProcess agent = make_plan(spec, two).processes[1];
  for (const char* option : {"--nnodes=\"$GROUP_WORLD_SIZE\" ", "--node_rank=\"$NODE_RANK\" ",
                             "--master_addr=10.0.0.1 ", "--master_port=\"$MASTER_PORT\" "}) {
    EXPECT_NE(agent.command.find(option), std::string::npos) << option << agent.command;
  }
  EXPECT_EQ(value_of(agent, "GROUP_WORLD_SIZE"), "2");
  EXPECT_EQ(value_of(agent, "NODE_RANK"), "1");
  EXPECT_EQ(value_of(agent, "MASTER_PORT"), "20500");
  EXPECT_EQ(value_of(agent, "RANK"), "(unset)");  // torch_agent.py treats a process with RANK as a worker
  spec.torchrun.rendezvous = RendezvousMethod::c10d;
  EXPECT_NE(make_plan(spec, two).processes[1].command.find("--rdzv_endpoint=10.0.0.1:\"$MASTER_PORT\" "),
            std::string::npos);
  spec.torchrun = {.nodes = NodeRange{1, 2}};
  EXPECT_THROW(make_plan(spec, two), Error);
}

std::vector<Node> two_with_mpi(const std::string& version, bool root = false) {
  std::vector<Node> nodes = two;
  for (Node& node : nodes) {
    node.mpi = MpiRuntime{.version = version, .root = root};
  }
  return nodes;
}

TEST(PlanGolden, Mpi) {
  LaunchSpec spec = spec_of("train.py --epochs 2");
  spec.launcher = Launcher::mpi;
  expect_golden("plan_mpi.txt", cli::plan_text(make_plan(spec, two_with_mpi("4.1.4"))));
  spec.command += " --api-key=s3cr3t";
  const std::string text = cli::plan_text(make_plan(spec, two_with_mpi("5.0.7", true)));
  expect_golden("plan_mpi5.txt", text);
  EXPECT_EQ(text.find("s3cr3t"), std::string::npos);
}

TEST(Mpi, WhatDiffersBetweenAttemptsStandsInVariables) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  spec.restarts = true;
  for (const auto kind : {MpiRuntime::Kind::open_mpi, MpiRuntime::Kind::hydra}) {
    std::vector<Node> nodes = two_with_mpi("4.1.4");
    nodes[0].mpi->kind = nodes[1].mpi->kind = kind;
    const Plan plan = make_plan(spec, nodes);
    const std::string& line = plan.processes[0].command;
    EXPECT_NE(line.find(kind == MpiRuntime::Kind::hydra ? " -n \"$WORLD_SIZE\" " : " --np \"$WORLD_SIZE\" "),
              std::string::npos)
        << line;
    EXPECT_NE(line.find(" \"$REMOTE_MPI_HOSTS\" "), std::string::npos) << line;
    EXPECT_EQ(line.find("remote-second-server"), std::string::npos) << line;
    EXPECT_EQ(value_of(plan.processes[0], "REMOTE_MPI_HOSTS"), "localhost:2,remote-second-server:2");
    EXPECT_EQ(value_of(plan.processes[0], "GROUP_WORLD_SIZE"), "2");
  }
}

TEST(PlanGolden, MpiOfMpich) {
  LaunchSpec spec = spec_of("./solve 'a b'");
  spec.launcher = Launcher::mpi;
  spec.torch = false;
  spec.mpi_over_ssh = true;
  std::vector<Node> nodes = two_with_mpi("4.0.2");
  for (Node& each : nodes) {
    each.mpi->kind = MpiRuntime::Kind::hydra;
  }
  expect_golden("plan_mpich.txt", cli::plan_text(make_plan(spec, nodes)));
}

TEST(Mpi, ASecretOfTheCommandIsNotShown) {
  LaunchSpec spec = spec_of("train.py --api-key hunter2");
  spec.launcher = Launcher::mpi;
  const Plan plan = make_plan(spec, two_with_mpi("4.1.4"));
  EXPECT_NE(plan.processes[0].command.find("hunter2"), std::string::npos);
  EXPECT_EQ(cli::plan_text(plan).find("hunter2"), std::string::npos);
  EXPECT_EQ(dump_json(cli::plan_json(plan)).find("hunter2"), std::string::npos);
}

// It is unknown which mpirun an image has.
TEST(PlanGolden, MpiInContainers) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  std::vector<Node> nodes = two;
  nodes[0].container = nodes[1].container = Container{ContainerEngine::podman, "image"};
  expect_golden("plan_mpi_containers.txt", cli::plan_text(make_plan(spec, nodes)));
  nodes[1].container.reset();
  nodes[1].mpi = MpiRuntime{.version = "4.1.4"};
  EXPECT_THROW(make_plan(spec, nodes), Error);
}

// mpirun would treat two servers with the same name as one, and must not resolve a name itself.
TEST(Mpi, EveryServerHasANameOfItsOwnForMpirun) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  std::vector<Node> nodes{node("gpu a", 1), node("gpu-b", 2), node("gpu.b", 3), node("7", 1)};
  for (Node& each : nodes) {
    each.mpi = MpiRuntime{.version = "4.1.4"};
  }
  const Plan plan = make_plan(spec, nodes);
  EXPECT_NE(plan.processes[0].command.find(" --host localhost:1,remote-gpu-b:2,remote-gpu-b-2:3,remote-7:1 "),
            std::string::npos)
      << plan.processes[0].command;
  EXPECT_EQ(plan.processes[2].mpi_host, "remote-gpu-b-2");
}

TEST(Mpi, TheUsersInterfacesWin) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  spec.env = {{"OMPI_MCA_btl_tcp_if_include", "ib0"}};
  const Plan plan = make_plan(spec, two_with_mpi("4.1.4"));
  EXPECT_EQ(value_of(plan.processes[1], "OMPI_MCA_btl_tcp_if_include"), "ib0");
  EXPECT_EQ(value_of(plan.processes[1], "OMPI_MCA_oob_tcp_if_include"), "ens5");
}

TEST(Mpi, TheLocalRankIsTheRanksOwn) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  spec.local_rank_arg = true;
  const Plan plan = make_plan(spec, two_with_mpi("4.1.4"));
  EXPECT_NE(plan.processes[0].command.find("'python train.py --local_rank=$LOCAL_RANK'"), std::string::npos);
}

TEST(Mpi, SaysWhatAServerLacks) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::mpi;
  const auto message = [&](const std::vector<Node>& nodes) {
    try {
      make_plan(spec, nodes);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  std::vector<Node> nodes = two_with_mpi("4.1.4");
  nodes[1].mpi.reset();
  EXPECT_EQ(
      message(nodes),
      "second-server: cannot launch with mpi: there is no supported mpirun (Open MPI, or MPICH's Hydra)");
  nodes = two_with_mpi("4.1.4");
  nodes[1].mpi->version = "4.1.6";
  EXPECT_EQ(
      message(nodes),
      "second-server: cannot launch with mpi: it has Open MPI 4.1.6, and first-server has Open MPI 4.1.4");
  nodes = two_with_mpi("4.1.4");
  nodes[0].mpi->has_daemon = false;
  EXPECT_EQ(
      message(nodes),
      "first-server: cannot launch with mpi: there is mpirun of Open MPI 4.1.4, but not its daemon (orted, "
      "prted or hydra_pmi_proxy)");
}

TEST(PlanGolden, SharedFile) {
  LaunchSpec spec = spec_of("train.py");
  spec.init_method = InitMethod::file;
  std::vector<Node> nodes{node("a", 1, "eth0"), node("b", 2, "eth0")};
  for (Node& one : nodes) {
    one.init_url = "file:///mnt/a disk/.remote-init-0123456789abcdef0123456789abcdef/store";
  }
  expect_golden("plan_init_file.txt", cli::plan_text(make_plan(spec, nodes)));
}

TEST(Plan, InitMethodIsAUrlOfTheMaster) {
  LaunchSpec spec = spec_of("train.py");
  EXPECT_EQ(value_of(make_plan(spec, two).processes[1], "INIT_METHOD"), "(unset)");
  spec.init_method = InitMethod::tcp;
  EXPECT_EQ(value_of(make_plan(spec, two).processes[1], "INIT_METHOD"), "tcp://10.0.0.1:20500");
  spec.master_addr = "fd00::1";
  EXPECT_EQ(value_of(make_plan(spec, two).processes[1], "INIT_METHOD"), "tcp://[fd00::1]:20500");
  spec.env = {{"INIT_METHOD", "tcp://x:1"}};
  EXPECT_THROW(make_plan(spec, two), Error);
  spec.init_method = InitMethod::env;
  EXPECT_EQ(value_of(make_plan(spec, two).processes[1], "INIT_METHOD"), "tcp://x:1");
}

TEST(PlanGolden, OtherThanPython) {
  LaunchSpec spec = spec_of("./simulate --steps 5 | tee log");
  spec.torch = false;
  spec.tags = {"night run"};
  expect_golden("plan_other.txt", cli::plan_text(make_plan(spec, {node("only", 1, "lo")})));
}

TEST(Plan, RanksAreCountedOverServersOfDifferentSize) {
  const Plan plan = make_plan(spec_of("train.py"), {node("a", 1), node("b", 3), node("c", 2)});
  EXPECT_EQ(plan.world_size, 6);
  ASSERT_EQ(plan.processes.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const PlannedProcess& process = plan.processes[i];
    EXPECT_EQ(process.rank, static_cast<int>(i));
    EXPECT_EQ(value_of(process, "RANK"), std::to_string(i));
    EXPECT_EQ(value_of(process, "WORLD_SIZE"), "6");
    EXPECT_EQ(value_of(process, "LOCAL_RANK"), std::to_string(process.local_rank));
    EXPECT_EQ(value_of(process, "GROUP_RANK"), std::to_string(process.node_rank));
    EXPECT_EQ(value_of(process, "ROLE_RANK"), std::to_string(process.rank));
    EXPECT_EQ(value_of(process, "ROLE_WORLD_SIZE"), value_of(process, "WORLD_SIZE"));
    EXPECT_EQ(value_of(process, "TORCHELASTIC_RUN_ID"), value_of(process, "RUN_UUID"));
    EXPECT_EQ(value_of(process, "CUDA_VISIBLE_DEVICES"), "(unset)");
  }
  EXPECT_EQ(plan.processes[5].server, "c");
  EXPECT_EQ(plan.processes[5].local_rank, 1);
  EXPECT_EQ(value_of(plan.processes[3], "LOCAL_WORLD_SIZE"), "3");
  EXPECT_EQ(value_of(plan.processes[0], "OMP_NUM_THREADS"), "(unset)");  // alone on its server
  EXPECT_EQ(value_of(plan.processes[1], "OMP_NUM_THREADS"), "1");
  EXPECT_EQ(value_of(plan.processes[1], "GLOO_SOCKET_IFNAME"), "(unset)");  // unknown: the library decides
}

TEST(Plan, TheUsersValuesWinButNotOverTheRanks) {
  LaunchSpec spec = spec_of("train.py");
  spec.env = {{"PYTHONUNBUFFERED", ""}, {"GLOO_SOCKET_IFNAME", "ib0"}, {"OMP_NUM_THREADS", "8"}};
  const Plan plan = make_plan(spec, two);
  EXPECT_EQ(value_of(plan.processes[3], "PYTHONUNBUFFERED"), "");
  EXPECT_EQ(value_of(plan.processes[3], "GLOO_SOCKET_IFNAME"), "ib0");
  EXPECT_EQ(value_of(plan.processes[3], "NCCL_SOCKET_IFNAME"), "=ens5") << "exactly this interface";
  EXPECT_EQ(value_of(plan.processes[3], "OMP_NUM_THREADS"), "8");
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_PORT", "LOCAL_RANK", "REMOTE_JOB_ID", "1A", "", "A-B", "A=B", "é"}) {
    spec.env = {{name, "7"}};
    try {
      make_plan(spec, two);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(error.message().find(fmt::format("'{}'", name)), std::string::npos) << error.message();
    }
  }
}

TEST(Plan, PythonIsPutInFrontOfAFileOnlyForTorch) {
  LaunchSpec spec = spec_of("train.py --x");
  EXPECT_EQ(make_plan(spec, two).processes[0].command, "python train.py --x");
  spec.command = "'my train.py' 1";
  EXPECT_EQ(make_plan(spec, two).processes[0].command, "python 'my train.py' 1");
  for (const char* given : {"python train.py", "python3 -u train.py", "bash train.sh", "./train.py.sh"}) {
    spec.command = given;
    EXPECT_EQ(make_plan(spec, two).processes[0].command, given);
  }
  spec.command = "./train.py";
  spec.torch = false;
  EXPECT_EQ(make_plan(spec, two).processes[0].command, "./train.py");
}

TEST(Plan, Tags) {
  using Tags = std::vector<std::string>;
  const Plan plan = make_plan(spec_of("python mnist.py"), two);
  EXPECT_EQ(plan.processes[0].tags, (Tags{"mnist.py", "distributed", "torch", "master"}));
  EXPECT_EQ(plan.processes[2].tags, (Tags{"mnist.py", "distributed", "torch"}));
  LaunchSpec spec = spec_of("python mnist.py");
  spec.tags = {"mine"};
  EXPECT_EQ(make_plan(spec, two).processes[0].tags, (Tags{"mine", "master"}));
  EXPECT_EQ(make_plan(spec, two).processes[1].tags, Tags{"mine"});
  EXPECT_EQ(default_tags("/usr/bin/python3.11 -u 'a b.py' x x --token=T --key T", {"x"}),
            (Tags{"-u", "a b.py", "x", "--token=********", "--key"}));
}

TEST(Plan, TagsOfAShellLineAreThoseOfItsPrograms) {
  using Tags = std::vector<std::string>;
  const auto tags = [](std::string_view command) { return default_tags(command, {}); };
  EXPECT_EQ(tags("[ $RANK != 2 ] || exit 3; sleep 600"), (Tags{"sleep", "600"}));
  EXPECT_EQ(tags("cd src && python train.py --lr 0.1 >log.txt 2>&1 & wait"),
            (Tags{"train.py", "--lr", "0.1"}));
  EXPECT_EQ(tags("NCCL_DEBUG=INFO python train.py"), Tags{"train.py"});
  EXPECT_EQ(tags("for i in 1 2; do ./step $i 'x;y' -o \"out $i\"; done # all"),
            (Tags{"./step", "x;y", "-o"}));
  EXPECT_EQ(tags("bash -lc 'source env.sh; python -m pkg.train'"), (Tags{"-m", "pkg.train"}));
  EXPECT_EQ(tags("python -c 'import torch; print(torch.rand(3))'"), Tags{"python"});
  EXPECT_EQ(tags("curl -H 'Authorization: Bearer abc' x | tee --token T all.log"),
            (Tags{"curl", "-H", "Authorization:", "Bearer", "x", "tee", "--token", "all.log"}));
  EXPECT_EQ(tags("test -f x && exit 1"), Tags{});
  EXPECT_EQ(tags("i=0; while [ $i -lt 9 ]; do i=$((i+1)); sleep $((i * 2)) 1; done"), (Tags{"sleep", "1"}));
  EXPECT_EQ(tags("a\\;b; ("), Tags{"a;b"});
}

TEST(Plan, RefusesWhatCannotBe) {
  const auto refused = [](LaunchSpec spec, const std::vector<Node>& nodes) {
    EXPECT_THROW(make_plan(spec, nodes), Error);
  };
  refused(spec_of("x"), {});
  refused(spec_of("  "), two);
  refused(spec_of(std::string("a\0b", 3)), two);
  refused(spec_of("x"), {node("a", 0)});
  LaunchSpec spec = spec_of("x");
  spec.master_port = 0;
  refused(spec, two);
  spec.master_port = 65536;
  refused(spec, two);
  spec = spec_of("x");
  spec.master_addr = "";
  refused(spec, two);
  spec = spec_of("x");
  spec.launcher = Launcher::mpi;
  refused(spec, two);
}

TEST(Plan, NamesWhatLimitsTheRanksOfAServer) {
  ChosenRanks one{.server = "a", .ranks = 2, .cpus = {2, 64, CpuBound::quota}};
  const auto text = [&] {
    Plan plan;
    plan.chosen = {one};
    return cli::chosen_ranks_text(plan);
  };
  EXPECT_EQ(text(), " (auto: no GPUs found, one for each core; 2 of 64: quota of the control group)");
  one.automatic = false;
  EXPECT_EQ(text(), " (one for each core; 2 of 64: quota of the control group)");
  one.cpus.bound = CpuBound::affinity;
  EXPECT_EQ(text(), " (one for each core; 2 of 64: processor affinity of the login)");
  one.gpus = {.there = {0, 1, 3},
              .indices = {3},
              .hidden_by = HiddenBy::prologue,
              .variable = "CUDA_VISIBLE_DEVICES"};
  EXPECT_EQ(text(), " (one for each core; 2 of 64: processor affinity of the login)")
      << "GPUs were not asked for";
  one.per = OnePer::gpu;
  EXPECT_EQ(text(), " (one for each GPU; 1 of 3 GPUs: CUDA_VISIBLE_DEVICES is set by the prologue)");
  one.gpus = {.there = {0, 1, 3}, .indices = {0, 1, 3}, .lost = 1};
  EXPECT_EQ(text(), " (one for each GPU; 1 GPU is lost)");
  one.gpus.lost = 0;
  EXPECT_EQ(text(), "") << "as was asked for";
  one.automatic = true;
  EXPECT_EQ(text(), " (auto: one for each GPU)");
}

TEST(Plan, AServersVariablesAreOverriddenByTheUsers) {
  LaunchSpec spec = spec_of("x");
  spec.env = {{"MINE", "user"}};
  std::vector<Node> nodes = two;
  nodes[1].env = {{"MINE", "server"}, {"OMP_NUM_THREADS", "7"}, {"OTHER", "server"}};
  const Plan plan = make_plan(spec, nodes);
  EXPECT_EQ(value_of(plan.processes[0], "OTHER"), "(unset)");
  EXPECT_EQ(value_of(plan.processes[0], "OMP_NUM_THREADS"), "1");
  EXPECT_EQ(value_of(plan.processes[2], "OTHER"), "server");
  EXPECT_EQ(value_of(plan.processes[2], "OMP_NUM_THREADS"), "7");
  EXPECT_EQ(value_of(plan.processes[2], "MINE"), "user");
  EXPECT_EQ(
      plan.processes[2].defaults,
      (Env{{"PYTHONUNBUFFERED", "1"}, {"GLOO_SOCKET_IFNAME", "ens5"}, {"NCCL_SOCKET_IFNAME", "=ens5"}}));
  nodes[1].env = {{"RANK", "0"}};
  EXPECT_THROW(make_plan(spec, nodes), Error);
}

TEST(Command, TheScriptThatItRuns) {
  const std::vector<std::pair<const char*, const char*>> commands = {
      {"python train.py --lr 1", "train.py"},
      {"/opt/env/bin/python3.11 -u -OO src/train.py", "src/train.py"},
      {"python -W ignore -Xdev -X utf8 'my train.py' -m x", "my train.py"},
      {"bash -eu run.sh -c x", "run.sh"},
      {"sh ./run.sh", "./run.sh"},
      {"./train --fast", "./train"},
      {"bin/train", "bin/train"},
      {"python ~/train.py", "~/train.py"},
      {"python -m pkg.train", ""},
      {"python -um pkg", ""},
      {"python -c 'print(1)' train.py", ""},
      {"python", ""},
      {"bash -c 'x y' z", ""},
      {"bash -lc run", ""},
      {"bash --rcfile x run.sh", ""},
      {"python \"$SCRIPT\"", ""},
      {"python {file}.py", ""},
      {"/usr/bin/true", ""},
      {"nvidia-smi", ""},
      {"cd sub && python train.py", "sub/train.py"},
      {"cd sub; python3 train.py", "sub/train.py"},
      {"cd 'my sub'/\ncd b && ./train", "my sub//b/./train"},
      {"cd ~/x && python train.py", "~/x/train.py"},
      {"cd sub && python /x/train.py", "/x/train.py"},
      {"cd sub || python train.py", ""},
      {"cd sub | python train.py", ""},
      {"cd sub & python train.py", ""},
      {"cd \"$DIR\" && python train.py", ""},
      {"cd - && python train.py", ""},
      {"cd && python train.py", ""},
      {"cd sub && python -m train", ""},
      {"cd sub", ""},
      {"A=1 python train.py", "train.py"},
      {"env A=1 exec python train.py", "train.py"},
      {"time python3 train.py", "train.py"},
      {"numactl -N0 -m 0 nice -n 5 python train.py", "train.py"},
      {"timeout -k 5 60 python train.py", "train.py"},
      {"taskset -c 0-3 ./train", "./train"},
      {"uv run python train.py", "train.py"},
      {"conda run -n x python train.py", "train.py"},
      {"timeout", ""},
      {"nice -n", ""},
      {"python train.py | tee log", "train.py"},
      {"python train.py >log 2>&1; echo", "train.py"},
      {"python 'a;b.py'", "a;b.py"},
      {"python train.py || python other.py", ""},
      {"python -m train | tee log", ""},
      {"(python train.py)", ""},
      {"python - <<E\nprint(1)\nE", ""},
      {"# python train.py", ""},
      {"export A=1 && python train.py", "train.py"},
      {"export A=1 B='x; y'; A=2\n\npython train.py", "train.py"},
      {"mkdir -p out; python train.py", "train.py"},
      {". ./env.sh && python train.py", "train.py"},
      {"cd sub && source env.sh && python train.py", "sub/train.py"},
      {"conda activate x && python train.py", "train.py"},
      {"set -e; module load cuda; echo begin; cd sub; ./train", "sub/./train"},
      {"set -e; ./prepare.sh && python train.py", "./prepare.sh"},
      {"set -e; make && python train.py", ""},
      {"set -e; python -m pkg && python train.py", ""},
      {"echo x >train.py; python train.py", ""},
      {"export A=`date`; python train.py", ""},
      {"export A=\"$(make)\"; python train.py", ""},
      {"mkdir -p out && cd out && python ../train.py", ""},
      {"set -e; cd \"$DIR\"; python train.py", ""},
      {"mkdir x || python train.py", ""},
      {"[ -e x ] && python train.py", ""},
      {"wget x; python train.py", ""},
      {"env -C sub python train.py", ""},
      {"conda run --cwd=sub -n x python train.py", ""},
      {"bash -c 'python train.py'", "train.py"},
      {"sh -ec \"cd sub; exec ./train\" name", "sub/./train"},
      {"cd sub && bash -o pipefail -c 'set -u; python train.py | tee log'", "sub/train.py"},
      {"bash -c 'bash -c \"python train.py\"'", "train.py"},
      {"bash -lc 'python train.py'", ""},
      {"bash -c 'python $1' x train.py", ""},
      {"bash -c \"$LINE\"", ""},
      {"bash -c", ""},
      {"torchrun train.py --lr 1", "train.py"},
      {"A=1 /opt/env/bin/torchrun --standalone --nproc_per_node=2 --rdzv-id 7 -r 3 sub/train.py",
       "sub/train.py"},
      {"python3 -u -m torch.distributed.run --nnodes 1:2 train.py", "train.py"},
      {"set -e; python -m torch.distributed.launch --use_env train.py", "train.py"},
      {"torchrun -m pkg.train", ""},
      {"torchrun --no-python train", ""},
      {"torchrun --unknown train.py", ""},
      {"torchrun --nnodes", ""},
      {"torchrun", ""},
      {"", ""}};
  for (const auto& [command, script] : commands) {
    EXPECT_EQ(script_of(command), script) << command;
  }
}

TEST(Command, TheFilesThatAreReadBeforeItsScript) {
  EXPECT_THAT(find_first_script("set -e; . ./env.sh; cd sub && source ~/x && . y && ./train").sourced,
              ElementsAre("./env.sh", "~/x", "sub/y"));
  EXPECT_THAT(find_first_script("cd sub; bash -c '. ./env.sh; ./train'").sourced,
              ElementsAre("sub/./env.sh"));
  EXPECT_THAT(find_first_script("set -e; ./train").sourced, IsEmpty());
  for (const char* harmless :
       {"", "export A=1\nB=2  # x\n\nmodule load cuda\nulimit -n 4096; umask 022\n", "set -a\n"}) {
    EXPECT_TRUE(only_sets_variables(harmless)) << harmless;
  }
  for (const char* unknown : {"cd sub", "export A=1\npushd x\n", "export A=$(pwd)", "echo 1 >train.py",
                              "if true; then cd x; fi", ". ./more.sh", "git clone x"}) {
    EXPECT_FALSE(only_sets_variables(unknown)) << unknown;
  }
}

TEST(Plan, EachScriptThatACommandBeginsWithGetsPython) {
  const std::pair<const char*, const char*> lines[] = {
      {"train.py --lr 1", "python train.py --lr 1"},
      {"FOO=1 train.py", "FOO=1 python train.py"},
      {"cd sub && train.py", "cd sub && python train.py"},
      {"export FOO=1; train.py; eval.py", "export FOO=1; python train.py; python eval.py"},
      {"time env A=1 train.py", "time env A=1 python train.py"},
      {"nice -n 5 train.py", "nice -n 5 python train.py"},
      {"env -u A B=1 train.py; numactl -N 0 x.py", "env -u A B=1 python train.py; numactl -N 0 python x.py"},
      {"timeout 10 train.py", "timeout 10 python train.py"},
      {"timeout", "timeout"},
      {"taskset -c 0-3 train.py", "taskset -c 0-3 python train.py"},
      {"stdbuf -oL train.py", "stdbuf -oL python train.py"},
      {"ls data | xargs -n1 train.py", "ls data | xargs -n1 python train.py"},
      {"conda run -n x train.py", "conda run -n x python train.py"},
      {"uv run train.py", "uv run train.py"},
      {"(time train.py)", "(time python train.py)"},
      {"(cd x; train.py) | tee log", "(cd x; python train.py) | tee log"},
      {"# first\ntrain.py", "# first\npython train.py"},
      {"python train.py", "python train.py"},
      {"./train.py", "./train.py"},
      {"A=b.py train.py", "A=b.py python train.py"},
      {"cat a.py b.py", "cat a.py b.py"},
      {"echo x=1 train.py", "echo x=1 train.py"},
      {"echo 'a; train.py'", "echo 'a; train.py'"},
      {"python a.py  # train.py", "python a.py  # train.py"},
      {"", ""}};
  for (const auto& [line, right] : lines) {
    EXPECT_EQ(insert_python(line), right) << line;
  }
}

TEST(Plan, TheEndOfAPipeHasTheExitStatus) {
  EXPECT_EQ(last_of_pipe("python train.py | tee log"), "tee");
  EXPECT_EQ(last_of_pipe("python train.py 2>&1 |& A=1 tee log;\n"), "tee");
  EXPECT_EQ(last_of_pipe("cd x && a | b | grep loss"), "grep");
  for (const char* line :
       {"a | b; c", "a | b && c", "a || b", "set -o pipefail; a | tee b", "echo 'a | b'", "a", ""}) {
    EXPECT_EQ(last_of_pipe(line), "") << line;
  }
}

TEST(Command, AnEchoAtTheEndOfAListHidesAFailure) {
  EXPECT_EQ(with_failures_of_list("python x.py; echo done"), "python x.py && echo done");
  EXPECT_EQ(with_failures_of_list("cd a; python x.py 'a;b'\ndate;\n"), "cd a; python x.py 'a;b' && date");
  for (const char* line :
       {"cd a; python x.py", "python x.py && echo done", "python 'a; echo b'", "set -e; ./a.py; echo b",
        "for i in 1 2; do ./a.py; echo b; done", "( ./a.py; echo b )", "./a.py; echo b >c",
        "python x.py || true; echo b", "python x.py & wait; echo b", "sleep 1; echo a", "echo a", "", ";"}) {
    EXPECT_EQ(with_failures_of_list(line), "") << line;
  }
}

// Addresses in pip's output, in pieces of any size.
TEST(Plan, SecretsInOutputAreMasked) {
  const std::string text =
      "Looking in indexes: https://bob:s3cretTOKEN@example.org/simple\n 10%\r 20%\rfatal: "
      "git+http://s3cretTOKEN@h/x.git";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    OutputMask mask;
    std::string all;
    for (std::size_t at = 0; at < text.size(); at += size) {
      all += mask.take(std::string_view(text).substr(at, size));
    }
    all += mask.finish();
    EXPECT_EQ(all,
              "Looking in indexes: https://bob:********@example.org/simple\n 10%\r 20%\rfatal: "
              "git+http://********@h/x.git");
  }
}

TEST(Plan, SecretsInTheQueryOfAUrlAreMasked) {
  const std::vector<std::pair<const char*, const char*>> lines = {
      {"get https://h/p.whl?private_token=abc", "get https://h/p.whl?private_token=********"},
      {"'https://h/b?sv=1&sig=a%2Fb&se=2' x?token=y", "'https://h/b?sv=1&sig=********&se=2' x?token=y"},
      {"https://h/?X-Amz-Signature=ab;X-Amz-Date=1#key=1",
       "https://h/?X-Amz-Signature=********;X-Amz-Date=1#key=1"},
      {"https://a:b@h/?a=1&access_token=c https://h/?token=d",
       "https://a:********@h/?a=1&access_token=******** https://h/?token=********"},
      {"https://h/?page=3&max_tokens=5", "https://h/?page=3&max_tokens=5"},
      {"https://h/a?", "https://h/a?"}};
  for (const auto& [line, right] : lines) {
    EXPECT_EQ(mask_line(line), right);
  }
}

TEST(Plan, OptionsOfTheInterpreterGetOne) {
  EXPECT_EQ(with_python("-m pkg.train --lr 1"), "python -m pkg.train --lr 1");
  EXPECT_EQ(with_python(" -u train.py"), "python -u train.py");
  EXPECT_EQ(with_python("./run -u"), "./run -u");
  EXPECT_EQ(with_python("CONFIG=configs/base.py python3 train.py"),
            "CONFIG=configs/base.py python3 train.py");
  EXPECT_EQ(make_plan(spec_of("-m pkg.train"), two).processes[0].command, "python -m pkg.train");
  LaunchSpec other = spec_of("-m pkg.train");
  other.torch = false;
  EXPECT_EQ(make_plan(other, two).processes[0].command, "-m pkg.train");
}

TEST(Plan, ResolvesRanksPerServer) {
  const auto ranks = [](std::string_view text, int gpus) {
    return number_of_ranks(parse_ranks_per_server(text).value(), gpus, 8);
  };
  EXPECT_EQ(ranks("3", 0), 3);
  EXPECT_EQ(ranks("4096", 0), 4096);
  EXPECT_EQ(ranks("auto", 2), 2);
  EXPECT_EQ(ranks("auto", 0), 8);
  EXPECT_EQ(ranks("gpu", 2), 2);
  EXPECT_EQ(ranks("gpu", 0), 0);
  EXPECT_EQ(ranks("cpu", 2), 8);
  for (const char* bad : {"0", "-1", "x", "", "2x", "4097", "99999"}) {
    EXPECT_EQ(parse_ranks_per_server(bad), std::nullopt) << bad;
  }
  for (const char* word : {"auto", "gpu", "cpu", "3"}) {
    EXPECT_EQ(to_string(parse_ranks_per_server(word).value()), word);
  }
}

std::string torchrun_target(const std::string& command) {
  LaunchSpec spec = spec_of(command);
  spec.launcher = Launcher::torchrun;
  std::string text = make_plan(spec, two).processes[0].command;
  const std::size_t at = text.find(" -m torch.distributed.run ");
  const std::string options = "-r 2:1 -t 2:1 ";
  return text.substr(0, at) + " | " + text.substr(text.find(options) + options.size());
}

TEST(Torchrun, MeetsByC10dWhereNodesOrWorkersMayComeAgain) {
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::torchrun;
  const auto needed = [&](const TorchrunOptions& options) {
    spec.torchrun = options;
    return make_plan(spec, two).needed;
  };
  const auto meets_by_c10d = [&] {
    return make_plan(spec, two).processes[1].command.find("--rdzv_backend=remote_c10d") != std::string::npos;
  };
  EXPECT_EQ(needed({}), std::nullopt);
  EXPECT_FALSE(meets_by_c10d());
  EXPECT_EQ(needed({.nodes = parse_node_range("2")}), std::nullopt);
  EXPECT_EQ(needed({.nodes = parse_node_range("2:2")}), std::nullopt);
  EXPECT_FALSE(meets_by_c10d());
  EXPECT_EQ(needed({.nodes = parse_node_range("1:2")}), 1);
  EXPECT_TRUE(meets_by_c10d());
  EXPECT_EQ(needed({.max_restarts = 1}), std::nullopt);
  EXPECT_TRUE(meets_by_c10d());
  needed({.rendezvous = RendezvousMethod::static_, .max_restarts = 1});
  EXPECT_FALSE(meets_by_c10d());
  for (const char* bad : {"", "0", "2:1", "0:2", "a:2", "1:", ":2", "1:2:2", "-1:2"}) {
    EXPECT_EQ(parse_node_range(bad), std::nullopt) << bad;
  }
  for (const NodeRange bad : {NodeRange{3, 3}, {1, 1}, {1, 3}, {0, 2}, {3, 2}}) {
    EXPECT_THROW(needed({.nodes = bad}), Error) << to_string(bad);
  }
  EXPECT_EQ(parse_rendezvous("etcd"), std::nullopt);
  EXPECT_THROW(needed({.rendezvous = RendezvousMethod::static_, .nodes = NodeRange{1, 2}}), Error);
  EXPECT_THROW(needed({.max_restarts = -1}), Error);
  spec.init_method = InitMethod::file;
  EXPECT_NO_THROW(needed({.rendezvous = RendezvousMethod::c10d}));
  EXPECT_THROW(needed({.max_restarts = 1}), Error);
  EXPECT_THROW(needed({.nodes = NodeRange{1, 2}}), Error);
  EXPECT_THROW(needed({.nodes = NodeRange{1, 2}, .max_restarts = 0}), Error);
  spec.init_method = InitMethod::tcp;
  EXPECT_NO_THROW(needed({}));
  EXPECT_THROW(needed({.rendezvous = RendezvousMethod::c10d}), Error);
  spec.init_method = InitMethod::env;
  spec.launcher = Launcher::ranks;
  EXPECT_THROW(needed({.max_restarts = 0}), Error);
}

TEST(Torchrun, TakesTheCommandApart) {
  EXPECT_EQ(torchrun_target("-m pkg.train --lr 1"), "python | --module pkg.train --lr 1");
  EXPECT_EQ(torchrun_target("-u train.py"), "python | train.py");
  for (const auto& [command, target] : {std::pair{"python train.py --a 'b c'", "python | train.py --a 'b c'"},
                                        {"train.py", "python | train.py"},
                                        {"/opt/py/bin/python3 -u train.py", "/opt/py/bin/python3 | train.py"},
                                        {"python -m pkg.mod x", "python | --module pkg.mod x"},
                                        {"python -O train.py", "python | --no_python python -O train.py"},
                                        {"train.py --tag=#1", "python | train.py --tag=#1"},
                                        {"./simulate 1", "python | --no_python ./simulate 1"},
                                        {"train.py '|' \\; \"&&\"", "python | train.py '|' \\; \"&&\""}}) {
    EXPECT_EQ(torchrun_target(command), target);
  }
  for (const char* bad : {"a | b", "A=1 train.py", "cd x && train.py", "train.py > log", "train.py 'open",
                          "(x)", "train.py #x"}) {
    EXPECT_THROW(torchrun_target(bad), Error) << bad;
  }
  LaunchSpec spec = spec_of("train.py");
  spec.launcher = Launcher::torchrun;
  spec.local_rank_arg = true;
  EXPECT_THROW(make_plan(spec, two), Error);
}

TEST(Command, WordsAreTheShells) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(shell_words(" a  'b c'\"d e\" \\'f \"g\\\"h\" '' "), (Words{"a", "b cd e", "'f", "g\"h", ""}));
  EXPECT_TRUE(shell_words("").empty());
}

TEST(Command, MasksSecretsAndNothingElse) {
  EXPECT_EQ(mask_command("x --token abc --key=abc API_KEY=abc --keyboard us"),
            "x --token ******** --key=******** API_KEY=******** --keyboard us");
  EXPECT_EQ(mask_command("x --password 'a b'  --db-password=\"c d\" y"),
            "x --password ********  --db-password=******** y");
  EXPECT_EQ(mask_command("x --token --verbose"), "x --token --verbose");
  EXPECT_EQ(mask_command("x api_key: abc; lr: 0.1"), "x api_key:******** ******** lr: 0.1");
  EXPECT_EQ(mask_command("mysql -p secret; ssh -p 22 h"), "mysql -p ******** ssh -p 22 h");
  EXPECT_EQ(mask_command("sshpass -phunter2 ssh h"), "sshpass -p******** ssh h");
  EXPECT_EQ(mask_command("SSHPASS=x GITHUB_PAT=y PATH=z"), "SSHPASS=******** GITHUB_PAT=******** PATH=z");
  EXPECT_EQ(mask_command("git clone https://ada:pw@x.example/r:1@2 ssh://git@h/r"),
            "git clone https://ada:********@x.example/r:1@2 ssh://git@h/r");
  EXPECT_EQ(mask_command("curl https://0123456789abcdef0123456789@x.example/"),
            "curl https://********@x.example/");
  EXPECT_EQ(mask_command("curl -H 'Authorization: Bearer abc' u"),
            "curl -H Authorization: Bearer ******** u");
  EXPECT_EQ(mask_command("curl -u ada:pw --user=ada:pw -uada:pw --proxy-user a:b u"),
            "curl -u ada:******** --user=ada:******** -uada:******** --proxy-user a:******** u");
  EXPECT_EQ(mask_command("curl -H 'X-Api-Key: abc' -H cookie:abc -H 'Authorization: token abc' u"),
            "curl -H X-Api-Key: ******** -H cookie:******** -H Authorization: token ******** u");
  EXPECT_EQ(mask_command("git clone https://hunter2@x.example/r"), "git clone https://********@x.example/r");
  EXPECT_EQ(mask_command("mysql -psecret x; train.py -pHunter2"), "mysql -p******** x; train.py -p********");
  for (const char* plain :
       {"find . -print -prune", "gcc -pthread -pipe", "docker run -u 1000:1000 a:b",
        "tool -p8080 -p0.5 -p/tmp/x", "python -u train.py", "x model:value/none a:b",
        "mkdir -p ckpt; echo a > ckpt/a.pt", "sudo cp -r -p a b", "python t.py --tokenizer bert",
        "x --max-tokens 512 --key-size 8 --token-len 5", "TOKENIZERS_PARALLELISM=false x"}) {
    EXPECT_EQ(mask_command(plain), plain);
  }
  EXPECT_EQ(mask_command("x --hf-token abc --authtoken=y"), "x --hf-token ******** --authtoken=********");
  EXPECT_EQ(mask_command("x Bearer abc y"), "x Bearer ******** y");
  EXPECT_EQ(mask_value("DB", "postgres://u:p@h/d"), "postgres://u:********@h/d");
  const std::string plain = "  python 'a b' \"$X\" | tee \\\n é";
  EXPECT_EQ(mask_command(plain), plain);
}

// For example mpirun, which reaches the other servers by itself.
TEST(Plan, ALauncherMayPlanOneProcessForAllServersAndNeedNoPort) {
  const Planner spanning{{Launcher::ranks, "one process"},
                         false,
                         [](const LaunchSpec& spec, const std::vector<Node>& nodes, int world_size) {
                           PlannedProcess process;
                           process.server = nodes.front().server;
                           process.ranks = world_size;
                           process.command = spec.command;
                           return std::vector{process};
                         }};
  LaunchSpec spec = spec_of("a.out");
  spec.master_port = 0;
  EXPECT_THROW(make_plan(spec, two), Error);
  const Plan plan = make_plan(spec, two, spanning);
  ASSERT_EQ(plan.processes.size(), 1U);
  EXPECT_EQ(plan.processes.front().ranks, 4);
  EXPECT_EQ(plan.world_size, 4);
}

TEST(Plan, EveryLauncherIsListedAndFound) {
  for (const LauncherInfo& info : launchers()) {
    EXPECT_EQ(planner_of(info.launcher).info.description, info.description);
  }
  EXPECT_THROW(planner_of(Launcher::sweep), Error);
}

}  // namespace
}  // namespace remote::launch
