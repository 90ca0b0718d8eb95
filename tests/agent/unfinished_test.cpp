#include "agent/job/unfinished.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/local_jobs.hpp"

namespace remote::agent {
namespace {

using ::testing::IsEmpty;

class Unfinished : public testing::Test, protected test::LocalJobs {
 protected:
  UnfinishedWork find() { return find_unfinished(host(), place()); }
  // A process with this command line, which runs in a folder.
  test::Started run_program(const fs::path& script, const std::string& word, const fs::path& folder,
                            const fs::path& program = "/bin/sh") {
    // The script waits for a writer of the FIFO.
    const std::string fifo = script.string() + ".fifo";
    test::HostFolder::put(script, "read x <'" + fifo + "'\n");
    ::mkfifo(fifo.c_str(), 0600);
    const std::string home = "HOME=" + host().home.string();
    test::Started child([&] {
      std::string shell = program.string();
      std::string first = script.string();
      std::string second = word;
      std::string variable = home;
      std::vector<char*> argv{shell.data(), first.data(), second.data(), nullptr};
      std::vector<char*> environment{variable.data(), nullptr};
      if (::chdir(folder.c_str()) == 0) {
        ::execve(shell.c_str(), argv.data(), environment.data());
      }
    });
    test::eventually([&] {
      const auto text = read_file("/proc/" + std::to_string(child.pid()) + "/cmdline");
      return text && text->find(script.string()) != std::string::npos;
    });
    return child;
  }
};

TEST_F(Unfinished, AreNoneIfAllHaveEnded) {
  make({{"spec.json", ""},
        {"supervisor", dead_supervisor()},
        {"journal.jsonl", test::format_end("exit 0 1700000000123 supervisor\n")}});
  make({{"supervisor", "claimed\n"}, {"journal.jsonl", test::format_end("never 0 1700000000123 claim\n")}});
  make({{"spec.json", ""}, {"supervisor", dead_supervisor()}});
  test::HostFolder::put(fs::path(jobs().jobs) / ".bin/x", "");
  const UnfinishedWork reply = find();
  EXPECT_THAT(reply.jobs, IsEmpty());
  EXPECT_THAT(reply.running, IsEmpty());
  fs::remove_all(fs::path(jobs().project));
  EXPECT_THAT(find().jobs, IsEmpty());
}

TEST_F(Unfinished, JobsOfThisFolderThatRun) {
  const test::Started process = stranger();
  const std::string id =
      make({{"spec.json", ""}, {"supervisor", supervisor_words(process)}, {"pid", words(process) + "\n"}});
  const UnfinishedWork reply = find();
  ASSERT_EQ(reply.running.size(), 1U);
  EXPECT_EQ(reply.running[0].id, id);
  EXPECT_EQ(reply.running[0].project, jobs().project.string());
  EXPECT_THAT(reply.jobs, IsEmpty());
}

TEST_F(Unfinished, ProcessesOfOtherJobs) {
  const std::string id = new_id();
  const test::Started one = carrier(id);
  const test::Started two = carrier(id);
  const test::Started elsewhere = test::run_sleep({"HOME=/another", "REMOTE_JOB_ID=" + new_id()});
  const UnfinishedWork reply = find();
  ASSERT_EQ(reply.running.size(), 1U);
  EXPECT_EQ(reply.running[0].id, id);
  EXPECT_TRUE(reply.running[0].pid == one.pid() || reply.running[0].pid == two.pid());
  EXPECT_EQ(reply.running[0].project, "");
}

TEST_F(Unfinished, ProgramsOfLaunches) {
  const std::string id = new_id();
  const fs::path project = path() / "other project";
  const fs::path bin = project / ".jobs/.bin/0123abcd";
  const fs::path job = project / ".jobs" / id;
  fs::create_directories(job);
  fs::create_directories(path() / "programs");
  for (const char* name : {"remote-guard", "remote-launch", "remote-sweep"}) {
    fs::create_symlink("/bin/sh", path() / "programs" / name);
  }
  const test::Started guard = run_program(bin / "script", "x", job, path() / "programs/remote-guard");
  const test::Started supervisor =
      run_program(bin / "supervise", "x", project, path() / "programs/remote-launch");
  const test::Started sweep = run_program(bin / "sweep", "x", project, path() / "programs/remote-sweep");
  const test::Started other = run_program(bin / "python/other.py", "x", project);
  const test::Started no_job = run_program(bin / "none", "x", project, path() / "programs/remote-guard");
  const UnfinishedWork reply = find();
  std::map<int, wire::RunningJob> running;
  for (const wire::RunningJob& one : reply.running) {
    running[one.pid.value()] = one;
  }
  ASSERT_EQ(running.size(), 3U);
  EXPECT_EQ(running.at(guard.pid()).id, id);
  EXPECT_EQ(running.at(guard.pid()).project, fs::canonical(project).string());
  EXPECT_FALSE(running.at(supervisor.pid()).id);
  EXPECT_FALSE(running.at(sweep.pid()).id);
}

TEST_F(Unfinished, JobsThatMayRunOnAnotherMachine) {
  const std::string rebooted = make({{"spec.json", ""}, {"supervisor", "10 20 another-boot 30\n"}});
  const std::string starting = make({{"spec.json", ""}});
  const std::string newer = make({{"backend", "queue\n"}, {"supervisor", "1 2 3 4\n"}});
  fs::create_directory_symlink(folder(newer), folder(new_id()));
  const UnfinishedWork reply = find();
  EXPECT_THAT(reply.running, IsEmpty());
  std::map<std::string, wire::JobReport> reports;
  for (const wire::JobReport& report : reply.jobs) {
    reports[report.id] = report;
  }
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports.at(rebooted).phase, wire::JobPhase::rebooted);
  EXPECT_EQ(reports.at(starting).phase, wire::JobPhase::starting);
  EXPECT_EQ(reports.at(newer).phase, wire::JobPhase::unknown);
  EXPECT_EQ(reports.at(newer).backend, "queue");
}

// The last process of a job may survive for a moment.
TEST_F(Unfinished, AreLookedForOnceMore) {
  const std::string id = new_id();
  const test::Started helper([&] {
    std::string variable = "REMOTE_JOB_ID=" + id;
    std::string home = "HOME=" + host().home.string();
    char name[] = "sleep";
    char time[] = "0.2";
    char* argv[] = {name, time, nullptr};
    char* environment[] = {variable.data(), home.data(), nullptr};
    ::execve("/bin/sleep", argv, environment);
  });
  test::eventually([&] { return find_job_processes(host()).contains(helper.pid()); });
  EXPECT_THAT(find().running, IsEmpty());
}

}  // namespace
}  // namespace remote::agent
