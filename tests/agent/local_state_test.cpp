#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <sys/prctl.h>

#include "agent/job/backend.hpp"
#include "agent/local_jobs.hpp"
#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

using wire::JobPhase;

class LocalState : public testing::Test, protected test::LocalJobs {
 protected:
  JobState state(const std::string& id, Look look = Look::usual) {
    Backends backends(host(), jobs());
    JobRecord job = record(id);
    return backends.find(job.backend)->find_state(job, look);
  }
  JobPhase phase(const std::string& id, Look look = Look::usual) { return state(id, look).phase; }
  static constexpr const char* well = "exit 0 1700000000123 supervisor\n";
};

TEST_F(LocalState, OfAJobThatHasNotBegun) {
  const std::string id = make({{"spec.json", ""}});
  EXPECT_EQ(phase(id), JobPhase::starting);
  EXPECT_FALSE(state(id, Look::all).pid);
  const test::Started early = carrier(id);
  EXPECT_EQ(state(id, Look::all).pid, early.pid());
  EXPECT_EQ(phase(make({{"spec.json", ""}, {"supervisor", "claimed\n"}})), JobPhase::none);
  EXPECT_EQ(phase(make({{"supervisor", "claimed\n"},
                        {"journal.jsonl", test::format_end("never 0 1700000000123 claim\n")}}),
                  Look::all),
            JobPhase::none);
}

TEST_F(LocalState, OfAJobThatRuns) {
  const test::Started supervisor = stranger();
  const test::Started main = stranger();
  const std::string id = make({{"spec.json", ""}, {"supervisor", supervisor_words(supervisor)}});
  EXPECT_EQ(phase(id), JobPhase::starting);
  put(id, "pid", words(main) + "\n");
  const JobState running = state(id);
  EXPECT_EQ(running.phase, JobPhase::running);
  EXPECT_EQ(running.pid, main.pid());
  EXPECT_TRUE(running.supervised);
  EXPECT_FALSE(running.left || running.leftovers || running.unseen);
  EXPECT_EQ(running.reason, "");
}

TEST_F(LocalState, OfASpareAndOfOneThatWaitsForItsTurn) {
  const test::Started supervisor = stranger();
  const std::string spare =
      make({{"spec.json", ""}, {"supervisor", supervisor_words(supervisor)}, {"spare", "x\n"}});
  EXPECT_EQ(phase(spare), JobPhase::queued);
  EXPECT_EQ(state(spare).reason, "spare, until it replaces a server");
  const std::string first = make({{"spec.json", ""},
                                  {"supervisor", supervisor_words(supervisor)},
                                  {"pid", words(supervisor) + "\n"},
                                  {"turn", "second of 2, behind \x1b[2Jada\n"}});
  const std::string second = make(
      {{"spec.json", ""}, {"supervisor", supervisor_words(supervisor)}, {"pid", words(supervisor) + "\n"}});
  for (const std::string& id : {first, second}) {
    put(id, "queue", first + "\n/usr/bin/python3\n");
    EXPECT_EQ(phase(id), JobPhase::queued);
    EXPECT_EQ(state(id).reason, "second of 2, behind \\x1b[2Jada");
  }
  // The job can write this file, but it must not refer to files elsewhere.
  test::HostFolder::put(path() / "secret/turn", "a secret\n");
  put(second, "queue", (path() / "secret").string() + "\n");
  EXPECT_EQ(state(second).reason, "");
}

// As on a full disk, if there was enough space for the result but not for the pid.
TEST_F(LocalState, AJobWhosePidCouldNotBeWrittenDidNotStart) {
  const std::map<std::string, std::string> files{
      {"spec.json", ""},
      {"supervisor", dead_supervisor()},
      {"journal.jsonl", test::format_end("exit 127 1700000000123 supervisor\n")}};
  const std::string id = make(files);
  EXPECT_EQ(phase(id), JobPhase::ended);
  EXPECT_EQ(state(id).reason, "it did not start, because its folder cannot be written: is the disk full?");
  put(id, "pid", "999999998 1\n");
  EXPECT_EQ(state(id).reason, "") << "the command's own exit code";
}

TEST_F(LocalState, ADeadSupervisorHidesNoJob) {
  const test::Started main = stranger();
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"pid", words(main) + "\n"}});
  for (const Look look : {Look::brief, Look::usual, Look::all}) {
    EXPECT_EQ(phase(id, look), JobPhase::running);
    EXPECT_FALSE(state(id, look).supervised);
    EXPECT_EQ(state(id, look).pid, main.pid());
  }
}

TEST_F(LocalState, AQueuedJobStaysQueuedWithoutItsSupervisor) {
  const test::Started main = stranger();
  const std::string id = make({{"spec.json", ""},
                               {"supervisor", dead_supervisor()},
                               {"pid", words(main) + "\n"},
                               {"turn", "first of 2\n"}});
  put(id, "queue", id + "\n/usr/bin/python3\n");
  for (const Look look : {Look::brief, Look::usual, Look::all}) {
    EXPECT_EQ(phase(id, look), JobPhase::queued);
    EXPECT_EQ(state(id, look).reason, "first of 2");
    EXPECT_FALSE(state(id, look).supervised);
  }
  put(id, "pid", "999999998 1\n");  // only a child is left
  EXPECT_EQ(phase(id), JobPhase::gone);
  const test::Started child = carrier(id);
  EXPECT_EQ(phase(id), JobPhase::queued);
  EXPECT_EQ(state(id).pid, child.pid());
}

TEST_F(LocalState, OneWithNothingButAChildRuns) {
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"pid", "999999998 1\n"}});
  EXPECT_EQ(phase(id), JobPhase::gone);
  {
    const test::Started child = carrier(id);
    EXPECT_EQ(phase(id), JobPhase::running);
    EXPECT_EQ(state(id).pid, child.pid());
    EXPECT_FALSE(state(id).supervised);
    EXPECT_EQ(phase(id, Look::brief), JobPhase::gone) << "it looks at no other processes";
  }
  EXPECT_EQ(phase(id), JobPhase::gone);
}

TEST_F(LocalState, APidAloneProvesNothing) {
  const test::Started other = stranger();
  const std::string pid = std::to_string(other.pid());
  const std::string id = make({{"spec.json", ""},
                               {"supervisor", pid + " 1 " + read_boot_id(host()) + " " + pid + "\n"},
                               {"pid", pid + " 1\n"}});
  EXPECT_EQ(phase(id), JobPhase::gone);
  // after a reboot of the server not even both together are valid
  put(id, "supervisor", words(other) + " another-boot -\n");
  put(id, "pid", words(other) + "\n");
  EXPECT_EQ(phase(id), JobPhase::rebooted);
}

TEST_F(LocalState, ZombiesAreDead) {
  test::Started child([] {});
  ASSERT_TRUE(test::eventually([&] { return read_process(host(), child.pid())->is_dead(); }));
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", supervisor_words(child)}, {"pid", words(child) + "\n"}});
  EXPECT_EQ(phase(id), JobPhase::gone);
}

TEST_F(LocalState, LeftoversOfAnEndedJobAreCounted) {
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", test::format_end(well)}});
  EXPECT_FALSE(state(id).leftovers);
  const test::Started one = carrier(id);
  const test::Started two = carrier(id);
  const test::Started other = carrier(new_id());
  EXPECT_EQ(phase(id), JobPhase::ended);
  EXPECT_EQ(state(id).leftovers, 2);
  EXPECT_FALSE(state(id).left);
  EXPECT_FALSE(state(id, Look::brief).leftovers);
  // all of them count before its folder is removed
  EXPECT_EQ(phase(id, Look::all), JobPhase::running);
  EXPECT_TRUE(state(id, Look::all).left);
  // and if the job was stopped, they must end
  test::append(folder(id), test::format_stop("15 user:ada 1700000000123"));
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_TRUE(state(id).left);
  EXPECT_FALSE(state(id).leftovers);
}

TEST_F(LocalState, AStopInTheSecondPlaceCountsToo) {
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", test::format_end(well)}});
  put_second(id + ".journal.jsonl", test::format_stop("15 user:ada 1700000000123"));
  const test::Started one = carrier(id);
  EXPECT_TRUE(state(id).left);
}

TEST_F(LocalState, TheSupervisorAndItsHelpersAreNotTheJob) {
  const std::string id = new_id();
  const test::Started supervisor([&] {
    const test::Started helper = carrier(id);
    test::sleep_long();
  });
  fs::create_directories(folder(id));
  put(id, "supervisor", supervisor_words(supervisor));
  put(id, "journal.jsonl", test::format_end(well));
  put(id, "spec.json", "");
  ASSERT_TRUE(test::eventually([&] {
    const auto children = list_children(host(), supervisor.pid());
    return children && !children->empty() && !find_job_processes(host()).empty();
  }));
  EXPECT_EQ(phase(id, Look::all), JobPhase::ended);
  EXPECT_FALSE(state(id).leftovers);
}

TEST_F(LocalState, OfAnotherBootNothingIsLeft) {
  const std::string id = make(
      {{"supervisor", "1 2 another-boot 1\n"}, {"journal.jsonl", test::format_end(well)}, {"spec.json", ""}});
  const test::Started one = carrier(id);
  EXPECT_FALSE(state(id).leftovers);
  EXPECT_EQ(phase(id, Look::all), JobPhase::ended);
}

TEST_F(LocalState, SurvivorsOnRecordMakeItRun) {
  const test::Started survivor = stranger();
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", test::format_end(well)}});
  const ProcessId living = survivor.id(host());
  test::append(folder(id),
               test::format_survivors({{.name = "x"},
                                       {.process = wire::RecordedProcess{999999998, 1}},
                                       {.process = wire::RecordedProcess{living.pid, living.start}}}));
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_TRUE(state(id).left);
  EXPECT_EQ(state(id).pid, survivor.pid());
  EXPECT_EQ(phase(id, Look::brief), JobPhase::ended);
  test::append(folder(id), test::format_survivors({{.process = wire::RecordedProcess{living.pid, 1}}}));
  EXPECT_EQ(phase(id), JobPhase::ended);
}

TEST_F(LocalState, GpuMemoryThatIsStillHeldCounts) {
  put_program("nvidia-smi", "echo >>'" + (path() / "asked").string() + "'; echo 999999998; echo '[N/A]'");
  const std::map<std::string, std::string> files{
      {"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", test::format_end(well)}};
  const std::string id = make(files);
  const auto holder = [](int pid) {
    return wire::RecordedSurvivor{.process = wire::RecordedProcess{pid, 0}};
  };
  test::append(folder(id), test::format_survivors({holder(999999997), holder(999999998)}));
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_EQ(state(id).pid, 999999998);
  test::append(folder(id), test::format_survivors({holder(999999997)}));
  EXPECT_EQ(phase(id), JobPhase::ended);
  const test::Started living = stranger();
  put_program("nvidia-smi", "echo " + std::to_string(living.pid()));
  test::append(folder(id), test::format_survivors({holder(living.pid())}));
  EXPECT_EQ(phase(id), JobPhase::ended) << "that is another process now";
}

TEST_F(LocalState, ContainersAreAskedBeforeItIsGone) {
  put_program("docker",
              "[ ! -e '" + (path() / "boxes").string() + "' ] || cat '" + (path() / "boxes").string() + "'");
  const std::string id = make({{"spec.json", ""},
                               {"supervisor", dead_supervisor()},
                               {"pid", "999999998 1\n"},
                               {"container", "engine docker\n"}});
  EXPECT_EQ(phase(id), JobPhase::gone);
  test::HostFolder::put(path() / "boxes", "remote-" + id + " Up 3 minutes\n");
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_EQ(phase(id, Look::brief), JobPhase::gone);
  put(id, "journal.jsonl", test::format_end(well));
  EXPECT_EQ(phase(id), JobPhase::ended);
  EXPECT_EQ(phase(id, Look::all), JobPhase::running);
  test::append(folder(id), test::format_survivors({{.name = "container remote-" + id}}));
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_TRUE(state(id).left);
  EXPECT_EQ(state(id).pid, 999999998);
}

// A stop by this process, which is about to record the end.
std::string ending(const ProcessId& stopper) {
  wire::StopRequested request = test::make_stop("15 user:ada 1700000000000");
  request.stopper = {stopper.pid, stopper.start};
  request.records_end = true;
  return test::format_entry(request);
}

// A running kill records how the job ended.
TEST_F(LocalState, IsNotGoneWhileItIsBeingStopped) {
  const test::Started killer = stranger();
  const std::string id = make(
      {{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", ending(killer.id(host()))}});
  EXPECT_EQ(phase(id), JobPhase::running);
  EXPECT_FALSE(state(id).supervised);
  put(id, "journal.jsonl", ending({999999998, 1}));
  EXPECT_EQ(phase(id), JobPhase::gone);
}

TEST_F(LocalState, AResultThatCameMeanwhileIsSeen) {
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", ending({1, 1})}});
  Backends backends(host(), jobs());
  JobRecord job = record(id);
  put(id, "journal.jsonl", test::format_end("signal 9 1700000000123 kill\n"));
  const JobState state = backends.find("local")->find_state(job, Look::usual);
  EXPECT_EQ(state.phase, JobPhase::ended);
  EXPECT_TRUE(state.supervised);
  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->by, "kill");
}

TEST_F(LocalState, ProcessesAreLookedAtOnce) {
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"journal.jsonl", test::format_end(well)}});
  Backends backends(host(), jobs());
  JobRecord job = record(id);
  Backend& local = *backends.find("local");
  EXPECT_FALSE(local.find_state(job, Look::usual).leftovers);
  const test::Started one = carrier(id);
  EXPECT_FALSE(local.find_state(job, Look::usual).leftovers);
  backends.forget();
  EXPECT_EQ(local.find_state(job, Look::usual).leftovers, 1);
}

TEST_F(LocalState, UnknownBackendsAreNotFound) {
  Backends backends(host(), jobs());
  EXPECT_EQ(backends.find("queue"), nullptr);
  EXPECT_EQ(backends.find(""), nullptr);
  ASSERT_NE(backends.find("local"), nullptr);
  EXPECT_EQ(backends.find("local"), backends.find("local"));
  backends.forget();
}

TEST_F(LocalState, OfManyJobsIsFoundInNoTime) {
  std::vector<JobRecord> records;
  for (int i = 0; i < 300; ++i) {
    const std::string id =
        make({{"spec.json", ""}, {"supervisor", dead_supervisor()}, {"pid", "999999998 1\n"}});
    if (i % 2 == 0) {
      put(id, "journal.jsonl", test::format_end(well));
    }
    records.push_back(record(id));
  }
  Backends backends(host(), jobs());
  const auto begin = std::chrono::steady_clock::now();
  for (JobRecord& job : records) {
    const JobPhase phase = backends.find("local")->find_state(job, Look::usual).phase;
    EXPECT_EQ(phase, job.end ? JobPhase::ended : JobPhase::gone);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
}

// ---- labml

TEST_F(LocalState, OfLabmlIsToldByTheFilesThatItHasOpen) {
  const std::string id = make({{"job.out", ""}, {"job.err", ""}});
  const auto run = [&](const char* name, int fd) {
    const std::string file = (folder(id) / name).string();
    return test::Started([=] {
      if (std::freopen(file.c_str(), "a", fd == 1 ? stdout : stderr) != nullptr) {
        ::prctl(PR_SET_NAME, "opened");
        test::sleep_long();
      }
    });
  };
  for (const auto& [name, fd] : {std::pair("job.out", 1), std::pair("job.err", 2)}) {
    const test::Started process = run(name, fd);
    ASSERT_TRUE(test::eventually([&] { return read_process(host(), process.pid())->name == "opened"; }));
    put(id, "job.pid", std::to_string(process.pid()) + "\n");
    EXPECT_EQ(record(id).backend, "labml");
    EXPECT_EQ(phase(id), JobPhase::running);
    EXPECT_EQ(state(id).pid, process.pid());
    put(id, "journal.jsonl", test::format_end(well));
    EXPECT_EQ(phase(id), JobPhase::ended);
    fs::remove(folder(id) / "journal.jsonl");
  }
  EXPECT_EQ(phase(id), JobPhase::gone) << "it is dead";
  const test::Started other = stranger();
  put(id, "job.pid", std::to_string(other.pid()) + "\n");
  EXPECT_EQ(phase(id), JobPhase::gone) << "another process";
  fs::remove(folder(id) / "job.out");
  EXPECT_EQ(phase(id), JobPhase::unknown);
  EXPECT_EQ(state(id).reason,
            "cannot determine whether process " + std::to_string(other.pid()) + " still belongs to the job");
  put(id, "job.pid", "x\n");
  EXPECT_EQ(phase(id), JobPhase::gone);
}

}  // namespace
}  // namespace remote::agent
