#include "agent/job/lifelines.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job_folders.hpp"
#include "agent/launch/launch_files.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::LifelineState;

// A `sleep` replaces the supervisor.
class LifelinesTest : public ::testing::Test {
 protected:
  LifelinesTest() {
    test::JobFolders::put_file(agent, "the agent of another build");
    for (const fs::path& path : {bin, bin / "d1", agent}) {
      fs::permissions(path, fs::perms::owner_all);
    }
    spec.tokens = {"secret"};
    spec.server = "a é";
    spec.servers = {{"a é", 2, ""}};
    spec.program = "d1";
    spec.jobs = {{id, 0}, {other, 1}};
  }

  // Gives both jobs a dead lifeline.
  void put_dead() {
    for (const std::string& job : {id, other}) {
      ASSERT_TRUE(write_launch_spec(jobs.folder(job), spec));
      jobs.put(job, "lifeline", "ok\n");
      jobs.put(job, "lifeline.pid", dead);
    }
  }
  SupervisorStarter starter() {
    return [this](const Host& /*host*/, const JobsFolder& jobs_folder, const Path& executable,
                  const Path& program, const std::string& job) {
      EXPECT_EQ(jobs_folder.jobs.string(), folder.jobs.string());
      executables.push_back(executable.string());
      starts.push_back(program.string() + " " + job);
      if (lives) {
        const test::Started& process = processes.emplace_back(test::run_sleep({}));
        const ProcessId self = process.id(jobs.host());
        for (const std::string& each : {id, other}) {
          jobs.put(each, "lifeline.pid",
                   std::to_string(self.pid) + " " + std::to_string(self.start) + " " + boot + "\n");
        }
      }
      return can_start;
    };
  }
  std::optional<wire::LifelineTrouble> check(const std::string& job) {
    return Lifelines(jobs.host(), folder, starter()).check(jobs.record(job));
  }
  // The reason why it was not restarted.
  std::string dead_reason() {
    const auto trouble = check(id);
    return trouble && trouble->state == LifelineState::dead ? trouble->reason : "-";
  }
  void start(const std::vector<std::string>& ids) {
    start_lifeline(jobs.host(), folder, spec, (bin / "d1").string(), ids, starter());
  }

  test::JobFolders jobs;
  const JobsFolder folder = jobs.jobs();
  const fs::path bin = fs::path(folder.jobs) / ".bin";
  const fs::path agent = bin / "d1/remote-agent";  // of the launch
  const std::string own_program = jobs.host().system("/proc/self/exe").string();
  const std::string boot = read_boot_id(jobs.host());
  const std::string dead = "999999999 1 " + boot + "\n";
  const std::string id = jobs.make_running();
  const std::string other = jobs.make_running();
  wire::LaunchSpec spec;
  bool lives = true;
  bool can_start = true;
  std::vector<std::string> starts;  // "PROGRAM JOB"
  std::vector<std::string> executables;
  std::vector<test::Started> processes;
};

TEST_F(LifelinesTest, ReportHowTheyAre) {
  EXPECT_FALSE(check(id)) << "there is none";
  jobs.put(id, "lifeline", "ok\n");
  EXPECT_FALSE(check(id));
  jobs.put(id, "lifeline", "waiting for b\033\n");
  ASSERT_TRUE(check(id));
  EXPECT_EQ(check(id)->state, LifelineState::missing);
  EXPECT_EQ(check(id)->reason, "waiting for b\\x1b");
  jobs.put(id, "lifeline.pid", jobs.this_process() + " " + boot + "\n");
  EXPECT_EQ(check(id)->state, LifelineState::missing) << "it lives";
  jobs.put(id, "lifeline.pid", "999999999 1 another-boot\n");
  EXPECT_EQ(check(id)->state, LifelineState::missing) << "the server was restarted since";
  jobs.put(id, "lifeline.pid", "x y " + boot + "\n");
  EXPECT_EQ(check(id)->state, LifelineState::missing);
  EXPECT_THAT(starts, IsEmpty());
}

TEST_F(LifelinesTest, ADeadOneIsStartedAgainOnce) {
  put_dead();
  Lifelines lifelines(jobs.host(), folder, starter());
  const auto first = lifelines.check(jobs.record(id));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->state, LifelineState::restarted) << first->reason;
  EXPECT_EQ(first->reason, "");
  EXPECT_FALSE(lifelines.check(jobs.record(id))) << "it lives now";
  EXPECT_FALSE(lifelines.check(jobs.record(other)));
  // A job whose record is not written yet.
  jobs.put(other, "lifeline.pid", dead);
  EXPECT_EQ(lifelines.check(jobs.record(other))->state, LifelineState::restarted);
  EXPECT_THAT(starts, ElementsAre((bin / "d1").string() + " " + id));
}

// Another build may use other messages, which the supervisors on the other servers would drop.
TEST_F(LifelinesTest, OneThatIsStartedAgainIsOfTheBuildOfItsLaunch) {
  put_dead();
  EXPECT_EQ(check(id)->state, LifelineState::restarted);
  EXPECT_THAT(executables, ElementsAre(agent.string()));
  put_dead();
  jobs.put(id, "lifeline.json",
           replace_all(jobs.read(id, "lifeline.json"), "\"program\"", "\"newer\":1,\"program\""));
  EXPECT_EQ(check(id)->state, LifelineState::restarted) << "with a spec that only its own build understands";
  EXPECT_THAT(executables, ElementsAre(agent.string(), agent.string()));
  executables.clear();
  const auto expect_refused = [&] {
    put_dead();
    EXPECT_EQ(dead_reason(), "the agent of its launch in " + (bin / "d1").string() +
                                 " is missing, cannot be executed or is writable by other users");
  };
  fs::permissions(agent, fs::perms::owner_exec, fs::perm_options::remove);
  expect_refused();
  fs::permissions(agent, fs::perms::owner_all | fs::perms::others_write);
  expect_refused();
  fs::rename(agent, bin / "d1/other");
  expect_refused();
  fs::create_symlink("other", agent);
  expect_refused();
  EXPECT_THAT(executables, IsEmpty());
}

TEST_F(LifelinesTest, ItsOwnBuildNeedsNoExecutableCopy) {
  fs::copy_file("/proc/self/exe", agent, fs::copy_options::overwrite_existing);
  fs::permissions(agent, fs::perms::owner_read);  // as on a noexec file system
  put_dead();
  EXPECT_EQ(check(id)->state, LifelineState::restarted);
  EXPECT_THAT(executables, ElementsAre(own_program));
}

TEST_F(LifelinesTest, OneThatCannotBeStartedAgainIsReported) {
  put_dead();
  lives = false;
  EXPECT_EQ(dead_reason(), "it ends at once");
  can_start = false;
  EXPECT_EQ(dead_reason(), "no process can be started");
  starts.clear();
  const std::string missing = "its file lifeline.json is missing";
  jobs.put(id, "lifeline.json", "{}\n");
  EXPECT_EQ(dead_reason(), missing) << "it is not a spec";
  fs::remove(jobs.folder(id) / "lifeline.json");
  EXPECT_EQ(dead_reason(), missing);
  fs::create_symlink("../" + other + "/lifeline.json", jobs.folder(id) / "lifeline.json");
  EXPECT_EQ(dead_reason(), missing);
  EXPECT_THAT(starts, IsEmpty());
}

// A job can change its copy of the spec.
TEST_F(LifelinesTest, OnlyAFolderOfThisUserInBinIsAProgram) {
  put_dead();
  const std::string wrong = "its program in " + bin.string() + " is missing or writable by other users";
  const auto expect_wrong = [&](const std::string& digest) {
    spec.program = digest;
    ASSERT_TRUE(write_launch_spec(jobs.folder(id), spec));
    EXPECT_EQ(dead_reason(), wrong) << digest;
  };
  fs::create_symlink("d1", bin / "link");
  test::JobFolders::put_file(bin / "file", "");
  for (const std::string digest : {"", "missing", "link", "file"}) {
    expect_wrong(digest);
  }
  jobs.put(id, "lifeline.json", jobs.read(other, "lifeline.json"));
  const auto replace_digest = [&](const std::string& digest) {
    jobs.put(id, "lifeline.json", replace_all(jobs.read(other, "lifeline.json"), "\"d1\"", digest));
  };
  for (const std::string path : {"\"../.bin/d1\"", "\"..\"", "\".\"", "\"/tmp\""}) {
    replace_digest(path);
    EXPECT_EQ(dead_reason(), "its file lifeline.json is missing") << path;
  }
  fs::permissions(bin / "d1", fs::perms::group_write, fs::perm_options::add);
  expect_wrong("d1");
  fs::permissions(bin / "d1", fs::perms::owner_all);
  fs::permissions(bin, fs::perms::others_write, fs::perm_options::add);
  expect_wrong("d1");
  fs::permissions(bin, fs::perms::owner_all);
  fs::rename(bin, fs::path(folder.jobs) / "moved");
  fs::create_symlink("moved", bin);
  expect_wrong("d1");
  if (::geteuid() == 0) {
    fs::remove(bin);
    fs::rename(fs::path(folder.jobs) / "moved", bin);
    ASSERT_EQ(::chown((bin / "d1").c_str(), 1, 1), 0);
    expect_wrong("d1");
  }
  EXPECT_THAT(starts, IsEmpty());
}

TEST_F(LifelinesTest, NothingIsStartedAtTheProcessLimit) {
  put_dead();
  fs::remove(fs::path(jobs.host().root) / "proc");
  for (const auto& [name, text] : std::map<std::string, std::string>{
           {"self/limits",
            "Max processes             24                   24                   processes \n"},
           {"loadavg", "0.20 0.18 0.12 1/800 11206\n"},
           {"sys/kernel/random/boot_id", boot + "\n"}}) {
    test::JobFolders::put_file(fs::path(jobs.host().root) / "proc" / name, text);
  }
  for (int thread = 1; thread <= 24; ++thread) {
    test::JobFolders::put_file(fs::path(jobs.host().root) / "proc/100/task" / std::to_string(thread) / "stat",
                               "");
  }
  ASSERT_NE(find_process_limit(jobs.host()), "");
  jobs.put(id, "lifeline", "waiting\n");
  EXPECT_EQ(check(id)->state, LifelineState::missing);
  EXPECT_THAT(starts, IsEmpty());
}

TEST_F(LifelinesTest, TheFirstOneIsStartedBesideItsJobs) {
  spec.program = "elsewhere";
  start({id, other});
  EXPECT_THAT(executables, ElementsAre(own_program)) << "the build of the client, which starts the launch";
  spec.program = "d1";
  EXPECT_THAT(starts, ElementsAre((bin / "d1").string() + " " + id));
  for (const std::string& job : {id, other}) {
    EXPECT_EQ(read_launch_spec(jobs.folder(job).string()), spec);
    EXPECT_EQ(fs::status(jobs.folder(job) / "lifeline.json").permissions(),
              fs::perms::owner_read | fs::perms::owner_write)
        << "it is a secret";
  }
  // It can be restarted from the files it left.
  for (const std::string& job : {id, other}) {
    jobs.put(job, "lifeline.pid", dead);
  }
  EXPECT_EQ(check(other)->state, LifelineState::restarted);
  EXPECT_EQ(starts.back(), (bin / "d1").string() + " " + other);
}

TEST_F(LifelinesTest, TheFirstOneReadsTheSpecInAFolderThatExists) {
  start({test::JobFolders::new_id(), id});
  EXPECT_THAT(starts, ElementsAre((bin / "d1").string() + " " + id));
}

TEST_F(LifelinesTest, NoneIsStartedWithoutAJob) {
  start({});
  start({test::JobFolders::new_id()});
  EXPECT_THAT(starts, IsEmpty());
}

}  // namespace
}  // namespace remote::agent
