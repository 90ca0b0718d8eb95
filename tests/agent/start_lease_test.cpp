#include "agent/lease/start_lease.hpp"

#include <fcntl.h>

#include "agent/host/run.hpp"
#include "agent/host/users.hpp"
#include "agent/job/journal.hpp"
#include "agent/lease/list_leases.hpp"
#include "agent/lease/wait_for_lease.hpp"
#include "agent/lease_host.hpp"
#include "wire/json_text.hpp"

namespace remote::agent {
namespace {

using ::testing::HasSubstr;

class StartLease : public test::LeaseHost {
 protected:
  StartLease() {
    for (const std::string& id : ids) {
      fs::create_directories(job(id));
    }
  }
  JobsFolder jobs() { return {.project = folder() / "proj", .jobs = folder() / "proj/.jobs"}; }
  fs::path job(const std::string& id) { return folder() / "proj/.jobs" / id; }
  std::string read(const std::string& id, const std::string& name) {
    std::ifstream file(job(id) / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Lease take_for(const wire::LeaseToTake& wanted) { return take_for_jobs(host, jobs(), wanted, ids); }
  // Runs `wait-for-lease` for the first job, with this lease. Its stderr is in the file `errors`.
  test::Started start_waiting(const Lease& lease) {
    return test::Started([&] {
      ::prctl(PR_SET_PDEATHSIG, 0);
      for (const auto& [name, value] : host.environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      const int errors = ::open((folder() / "errors").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
      ::dup2(errors, 2);
      ::dup2(lease.fd(), lease_fd);
      close_descriptors(lease_fd + 1);
      ::_exit(run_wait_for_lease(job(ids[0]).c_str()));
    });
  }
  std::string errors() {
    std::ifstream file(folder() / "errors");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool eventually_has(const std::string& id, const std::string& name, const std::string& text) {
    return test::eventually([&] { return read(id, name) == text; });
  }

  const std::vector<std::string> ids{std::string(32, 'a'), std::string(32, 'b')};
};

TEST_F(StartLease, IsTakenForAllJobs) {
  const Lease lease = take_for({.terms = {.gpus = 2}});
  for (const std::string& id : ids) {
    EXPECT_EQ(read(id, "devices"),
              "leased gpus=0,1 cpus=0 memory=0\nCUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=0,1\n");
    EXPECT_FALSE(fs::exists(job(id) / "queue"));
  }
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(StartLease, OneThatIsNotTakenLeavesNothing) {
  try {
    take_for({.terms = {.gpus = 9}});
    ADD_FAILURE();
  } catch (const LeaseRefused& error) {
    EXPECT_STREQ(error.what(), never_enough);
  }
  EXPECT_FALSE(fs::exists(job(ids[0]) / "devices"));
  EXPECT_TRUE(fs::is_empty(leases));
}

TEST_F(StartLease, WhatOthersHaveLeasedCanBeWaitedFor) {
  const Lease lease = take_for({.terms = {.gpus = 7}});
  try {
    take_for({.terms = {.gpus = 2}});
    ADD_FAILURE();
  } catch (const LeasedByOthers& error) {
    EXPECT_EQ(error.what(),
              "2 GPUs needed, and 1 of 8 free by now: leased by " + UserNames(host).find(::geteuid()));
  }
  try {
    take_for({.terms = {.gpus = 9}});
    ADD_FAILURE();
  } catch (const LeaseRefused& error) {
    EXPECT_EQ(dynamic_cast<const LeasedByOthers*>(&error), nullptr);
  }
}

TEST_F(StartLease, JobsThatWaitGetTheirQueue) {
  const wire::LeaseToTake wanted{.terms = {.gpus = 2, .among = {1, 3}}, .waits = true, .is_together = true};
  const Lease lease = take_for(wanted);
  EXPECT_TRUE(entries().empty()) << "it is not in line yet";
  for (const std::string& id : ids) {
    EXPECT_EQ(read(id, "queue"),
              ids[0] + "\n" + wire::to_json_text(wanted) + "\n" + ids[0] + " " + ids[1] + "\n");
    EXPECT_TRUE(fs::is_empty(job(id) / "devices"));
    EXPECT_TRUE(fs::is_fifo(job(id) / ".turn"));
  }
}

TEST_F(StartLease, NeedsRoomInTheFoldersOfItsJobs) {
  fs::remove(job(ids[1]));
  for (const bool waits : {false, true}) {
    try {
      take_for({.terms = {.gpus = 1}, .waits = waits});
      ADD_FAILURE();
    } catch (const LeaseRefused& error) {
      EXPECT_STREQ(error.what(), "cannot write in the folders of its jobs: is the disk full?");
    }
    EXPECT_TRUE(fs::is_empty(leases));
    fs::remove_all(job(ids[0]));
    fs::create_directories(job(ids[0]));
  }
}

TEST_F(StartLease, FindsProgramsOfGpusByThePrologue) {
  fs::create_directories(folder() / "site");
  fs::rename(programs() / "nvidia-smi", folder() / "site/nvidia-smi");
  host.environment["PATH"] = programs().string() + ":/usr/bin:/bin";
  const std::string prologue = "PATH='" + (folder() / "site").string() + "':$PATH";
  EXPECT_EQ(take_for({.terms = {.gpus = 2, .prologue = prologue}}).gpus().size(), 2U);
  EXPECT_EQ(list_leases(host, {wire::LeaseTerms{.gpus = 1, .prologue = prologue}}).free->all_gpus, 8);
  EXPECT_EQ(list_leases(host, {wire::LeaseTerms{.gpus = 1}}).free->all_gpus, 0);
}

TEST_F(StartLease, FindsProgramsOfGpusAsALoginShell) {
  fs::create_directories(folder() / "site");
  fs::rename(programs() / "nvidia-smi", folder() / "site/nvidia-smi");
  put(root() / "dev/nvidia0", "");
  put(home() / ".profile", "PATH='" + (folder() / "site").string() + "'\n");
  host.environment["SHELL"] = "/bin/sh";
  host.environment["PATH"] = programs().string() + ":/usr/bin:/bin";
  EXPECT_EQ(take_for({.terms = {.gpus = 2}}).gpus().size(), 2U);
}

TEST_F(StartLease, TheFirstJobWaitsForAll) {
  auto first = take({.gpus = 8});
  const Lease lease = take_for({.terms = {.gpus = 8}, .waits = true, .chooses_port = true});
  test::Started waiter = start_waiting(lease);
  EXPECT_TRUE(test::eventually([&] { return !read(ids[0], "turn").empty(); }));
  EXPECT_EQ(read(ids[0], "turn"), "place 1 in line\n");
  first->remove();
  const int other = ::open((job(ids[1]) / ".turn").c_str(), O_RDONLY);
  char text[8] = {};
  EXPECT_EQ(::read(other, text, sizeof text), 3);
  EXPECT_STREQ(text, "go\n");
  ::close(other);
  EXPECT_EQ(waiter.wait(), 0);
  for (const std::string& id : ids) {
    EXPECT_THAT(read(id, "devices"), ::testing::MatchesRegex("leased gpus=0,1,2,3,4,5,6,7 cpus=0 memory=0\n"
                                                             "CUDA_DEVICE_ORDER=PCI_BUS_ID\n"
                                                             "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7\n"
                                                             "MASTER_PORT=[0-9]+\n"));
    EXPECT_TRUE(read_own_history(job(id).string()).started_at);
    EXPECT_FALSE(fs::exists(job(id) / "queue"));
  }
  EXPECT_FALSE(take({.gpus = 1})) << "this process has the descriptor, as the guards";
}

TEST_F(StartLease, IsTakenOnlyWhenAllJobsCanBeNotified) {
  const Lease lease = take_for({.terms = {.gpus = 1}, .waits = true});
  test::Started waiter = start_waiting(lease);
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "line\n"));
  EXPECT_TRUE(fs::exists(job(ids[0]) / "queue"));
  const Descriptor other(::open((job(ids[1]) / ".turn").c_str(), O_RDONLY));
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_FALSE(fs::exists(job(ids[0]) / "queue"));
}

TEST_F(StartLease, ProcessesOfOthersAreWaitedFor) {
  set_gpus(1, "GPU-0, 4121, 100, python3\n");
  const Lease lease = take_for_jobs(host, jobs(), {.terms = {.gpus = 1}, .waits = true}, {ids[0]});
  test::Started waiter = start_waiting(lease);
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "line\n"));
  set_gpus(1);
  EXPECT_TRUE(test::eventually([&] { return !fs::exists(job(ids[0]) / "queue"); }));
  EXPECT_EQ(waiter.wait(), 0);
}

TEST_F(StartLease, ADriverThatFailsIsWaitedFor) {
  set_gpus(1, "GPU-0, 4121, 100, python3\n");
  const Lease lease = take_for_jobs(host, jobs(), {.terms = {.gpus = 1}, .waits = true}, {ids[0]});
  test::Started waiter = start_waiting(lease);
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "line\n"));
  const fs::path broken = folder() / "broken";
  put(broken, "");
  EXPECT_TRUE(test::eventually([&] { return fs::exists(folder() / "asked"); }));
  set_gpus(1);
  fs::remove(broken);
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_FALSE(fs::exists(job(ids[0]) / "queue"));
}

TEST_F(StartLease, TheWaitEndsWithTheJob) {
  const Lease lease = take_for({.terms = {.gpus = 1}, .waits = true});
  std::optional<test::Started> parent;
  parent.emplace([&] {
    test::Started waiter = start_waiting(lease);
    put_file(job(ids[0]) / "waiter", std::to_string(waiter.pid()) + "\n");
    waiter.wait();
  });
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "line\n"));
  const int pid = std::stoi(read(ids[0], "waiter"));
  const auto waiter = read_process(Host{}, pid);
  ASSERT_TRUE(waiter);
  parent.reset();
  EXPECT_TRUE(test::eventually([&] { return !is_alive(Host{}, waiter->id); }));
}

TEST_F(StartLease, TheSupervisorOrdersWhatWaits) {
  fs::remove_all(job(ids[1]));
  const Lease lease = take_for_jobs(
      host, jobs(), {.terms = {.gpus = 1}, .waits = true, .is_together = true, .chooses_port = true},
      {ids[0]});
  test::Started waiter = start_waiting(lease);
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "keep\n"));
  put_file(job(ids[0]) / "turn.order", "take\n");
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "held\n"));
  EXPECT_FALSE(take({.gpus = 8}));
  put_file(job(ids[0]) / "turn.order", "keep\n");
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "keep\n"));
  EXPECT_TRUE(take({.gpus = 8})) << "it gave its lease back";
  put_file(job(ids[0]) / "turn.order", "take\n");
  EXPECT_TRUE(eventually_has(ids[0], "turn.state", "held\n"));
  put_file(job(ids[0]) / "turn.order", "go 4121\n");
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_EQ(read(ids[0], "turn.state"), "gone 4121\n");
  EXPECT_THAT(read(ids[0], "devices"), HasSubstr("\nMASTER_PORT=4121\n"));
}

TEST_F(StartLease, WhatAServerNeverHasIsNotWaitedFor) {
  const Lease lease = take_for({.terms = {.gpus = 9}, .waits = true});
  EXPECT_EQ(start_waiting(lease).wait(), 1);
  EXPECT_EQ(errors(), "remote: the lease was not taken: this server does not have the requested resources\n");
}

TEST_F(StartLease, AnotherFileAsDescriptorSevenIsRefused) {
  const Lease lease = take_for({.terms = {.gpus = 1}, .waits = true});
  for (const auto& entry : fs::directory_iterator(leases)) {
    fs::remove(entry.path());
  }
  EXPECT_EQ(start_waiting(lease).wait(), 1);
  EXPECT_THAT(errors(), HasSubstr("remote: the lease was not taken: the file of the lease in "));
  put(job(ids[0]) / "queue", ids[0] + "\ngpus=1\n" + ids[0] + "\n");
  EXPECT_EQ(start_waiting(lease).wait(), 1);
  EXPECT_THAT(errors(), HasSubstr("the file queue of the job is not understood"));
}

}  // namespace
}  // namespace remote::agent
