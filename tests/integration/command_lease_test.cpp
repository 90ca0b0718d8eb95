#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "support/command_world.hpp"
#include "support/waiting.hpp"

// Launches that lease GPUs, on simulated servers with a simulated nvidia-smi.

namespace remote::cli {
namespace {

using test::CommandResult;
using test::Refused;
using testing::HasSubstr;
using testing::IsEmpty;

class CommandLease : public ::testing::Test {
 protected:
  CommandLease() { world.servers().add_gpus(4); }

  nlohmann::json jobs() { return world.run({"job-list", "--json"}).json(); }
  test::CommandWorld world;
};

TEST_F(CommandLease, RanksHaveTheirGpusAlone) {
  const std::string command = "echo $CUDA_VISIBLE_DEVICES $LOCAL_RANK $WORLD_SIZE; exec sleep 1000";
  const CommandResult first = world.run({"launch", "--gpus", "3", "--", "sh", "-c", command});
  EXPECT_EQ(first.code, 0) << first.err;
  const auto all = jobs();
  ASSERT_EQ(all.size(), 6U) << "three ranks on each of two servers";
  const CommandResult result = world.run({"launch", "--gpus", "2", "--", "true"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("2 GPUs needed, and 1 of 4 free: "));
  EXPECT_THAT(result.err, HasSubstr("--wait starts it when they are free"));
  EXPECT_THAT(result.err, HasSubstr("hint: launch 1 of this project has leases there; --wait"));
  EXPECT_EQ(jobs().size(), 6U) << "nothing was started";
  EXPECT_THAT(world.run({"servers"}).out, HasSubstr("3 leased"));
  EXPECT_EQ(world.run({"top", "--once", "--json"}).json()[0]["load"]["leases"][0]["gpus"].size(), 3U);
  EXPECT_THAT(world.run({"top", "--once"}).out, HasSubstr("leased by "));
  EXPECT_EQ(world.run({"job-kill", "--launch", "last", "--yes"}).code, 0);
  EXPECT_EQ(world.run({"launch", "--gpus", "4", "--", "true"}).code, 0);
}

TEST_F(CommandLease, ADryRunIsRefusedAsTheLaunchIs) {
  const CommandResult gpus = world.run({"launch", "--dry-run", "--gpus", "5", "--wait", "--", "true"});
  EXPECT_EQ(gpus.code, 1);
  EXPECT_THAT(gpus.err, HasSubstr("5 GPUs needed, and there are 4"));
  const CommandResult cpus = world.run({"launch", "--dry-run", "--cpus", "500", "--wait", "--", "true"});
  EXPECT_EQ(cpus.code, 1);
  EXPECT_THAT(cpus.err, HasSubstr("500 cores needed, and there "));
  EXPECT_EQ(world.run({"launch", "--dry-run", "--gpus", "4", "--", "true"}).code, 0);
}

TEST_F(CommandLease, WaitingStartsThemInTheirTurn) {
  EXPECT_EQ(world.run({"job-run", "--server", "a", "--gpus", "4", "--cmd", "exec sleep 1000"}).code, 0);
  const CommandResult queued =
      world.run({"job-run", "--server", "a", "--gpus", "1", "--wait", "--cmd", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(queued.code, 0);
  EXPECT_THAT(queued.out, HasSubstr("job 2 queued"));
  test::until(
      [&] {
        const auto second = jobs().at(1);
        return second["state"] == "queued" && second.dump().find("place 1 in line") != std::string::npos;
      },
      "a place in line");
  {
    const auto follower = world.start({"job-tail", "--job", "2"});
    test::until([&] { return follower->err().find("job 2 on a: queued (") != std::string::npos; },
                "what it waits for");
    EXPECT_THAT(follower->err(), HasSubstr("place 1 in line"));
  }
  EXPECT_THAT(world.run({"job-why", "--job", "2"}), Refused("these jobs are queued: they have no ranks yet"));
  const CommandResult third =
      world.run({"job-run", "--server", "a", "--gpus", "1", "--wait", "--cmd", "true"});
  EXPECT_EQ(third.code, 0);
  EXPECT_EQ(world.run({"job-kill", "--job", "3", "--yes"}).code, 0);
  EXPECT_EQ(world.run({"job-kill", "--job", "1", "--yes"}).code, 0);
  EXPECT_EQ(world.run({"job-wait", "--job", "2"}).code, 0);
  EXPECT_THAT(world.run({"job-tail", "--job", "2", "--no-follow"}).out, HasSubstr("0\n"));
}

// Servers on one machine share its leases and its GPUs.
class OneMachine : public CommandLease {
 protected:
  OneMachine() {
    world.configure(
        "name: proj\npython: {manager: system}\nservers:\n"
        "  a: {hostname: a, internal_address: 127.0.0.1}\n  b: {hostname: b, internal_address: 127.0.0.1}\n");
    world.servers().set_variable("REMOTE_LEASES", world.servers().home("a"));
  }
};

TEST_F(OneMachine, WhatItDoesNotHaveTwiceIsRefusedAlsoIfTheLaunchWouldWait) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--wait"}, {"--dry-run"}}) {
    std::vector<std::string> words = {"launch", "--gpus", "3"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "true"});
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 1) << result;
    EXPECT_THAT(result.err, HasSubstr("a and b are one machine: 6 GPUs needed, and there are 4"));
    EXPECT_THAT(result.err, testing::Not(HasSubstr("remote check")));
  }
  const CommandResult cores = world.run({"launch", "--cpus", "500", "--wait", "--", "true"});
  EXPECT_THAT(cores.err, HasSubstr("a and b are one machine: 1000 cores needed, and there "));
  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(OneMachine, RanksThatWouldShareGpusWithoutALeaseAreWarnedOf) {
  const std::string warning =
      "warning: a: same-machine: b is the same machine: their ranks would share its GPUs\n";
  const auto launch = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"launch", "--on-failure", "leave", "--cmd", "true"};
    words.insert(words.end(), more.begin(), more.end());
    return world.run(words);
  };
  for (const char* number : {"auto", "gpu"}) {
    const CommandResult result = launch({"--nproc-per-node", number});
    EXPECT_EQ(result.code, 0) << result;
    EXPECT_THAT(result.err, HasSubstr(warning));
  }
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--nproc-per-node", "2"}, {"--nproc-per-node", "gpu", "--no-check"}, {"--gpus", "2"}}) {
    EXPECT_THAT(launch(more).err, testing::Not(HasSubstr("same-machine"))) << more.back();
  }
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n"
      "  a: {hostname: a, internal_address: 127.0.0.1, gpus: [0, 1]}\n"
      "  b: {hostname: b, internal_address: 127.0.0.1, gpus: [2, 3]}\n");
  EXPECT_THAT(launch({"--nproc-per-node", "gpu"}).err, testing::Not(HasSubstr("same-machine")))
      << "the GPUs are split";
}

TEST_F(OneMachine, AWaitingLaunchStartsOnceThereIsEnoughForBothNames) {
  ASSERT_EQ(world.run({"job-run", "--server", "a", "--gpus", "2", "--cmd", "exec sleep 1000"}).code, 0);
  const CommandResult queued =
      world.run({"launch", "--gpus", "2", "--wait", "--", "sh", "-c", "echo device $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(queued.code, 0) << queued;
  test::until([&] { return jobs().size() == 5 && jobs().at(1)["state"] == "queued"; }, "the queue");
  EXPECT_EQ(world.run({"job-kill", "--job", "1", "--yes"}).code, 0);
  EXPECT_EQ(world.run({"job-wait", "--launch", "last"}).code, 0);
  const std::string out = world.run({"job-tail", "--launch", "last", "--all", "--no-follow", "--quiet"}).out;
  EXPECT_THAT(out, HasSubstr("device 0,1"));
  EXPECT_THAT(out, HasSubstr("device 2,3"));
}

TEST_F(CommandLease, WhoComesASecondLateIsToldToWait) {
  // Another process takes the GPU after it was found free, when the job's folder exists.
  world.servers().add_program("nvidia-smi",
                              "case $1 in\n"
                              "  --query-gpu=*) echo '0, GPU-0' ;;\n"
                              "  --query-compute-apps=*) ls -d ~/proj/.jobs/????????????????????????????????"
                              " >/dev/null 2>&1 && echo 'GPU-0, 4121, 300, python3' ;;\n"
                              "esac\nexit 0\n");
  const CommandResult late = world.run({"job-run", "--server", "a", "--gpus", "1", "--cmd", "true"});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.err,
              HasSubstr("job 1 was not started: 1 GPU needed, and 0 of 1 free by now\n hint: --wait "
                        "starts it when they are free"));
}

TEST_F(CommandLease, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(world.run({"launch", "--wait", "--", "true"}), Refused("there is nothing to wait for"));
  EXPECT_THAT(world.run({"launch", "--gpus", "1", "-e", "CUDA_VISIBLE_DEVICES=0", "--", "true"}),
              Refused("a lease chooses the GPUs, but the variable CUDA_VISIBLE_DEVICES names some, too"));
  for (const char* line :
       {"CUDA_VISIBLE_DEVICES=0 python3 train.py", "export CUDA_VISIBLE_DEVICES=0; ./train",
        "env CUDA_VISIBLE_DEVICES=0 python3 train.py"}) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"launch"},
                                               {"torch-launch"},
                                               {"job-run", "--server", "a", "--no-check"},
                                               {"sweep", "--param", "x=1,2", "--no-check"}}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--gpus", "1", "--cmd", line});
      EXPECT_THAT(world.run(all), Refused("the variable CUDA_VISIBLE_DEVICES names some"))
          << words[0] << ' ' << line;
    }
  }
  EXPECT_THAT(world.run({"launch", "--memory", "much", "--", "true"}), Refused("wrong --memory 'much'"));
  const CommandResult result = world.run({"launch", "--gpus", "5", "--wait", "--", "true"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("5 GPUs needed, and there are 4"));
  EXPECT_THAT(jobs(), IsEmpty());
}

}  // namespace
}  // namespace remote::cli
