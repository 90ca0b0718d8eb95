// Jobs that labml_remote started in the same project.

#include <csignal>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "support/command_world.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandLabmlJobs : public ::testing::Test {
 protected:
  // Writes labml_remote's files, here and on the server, for a job with this process.
  void record(const std::string& id, int key, pid_t pid) {
    make_folders(world.project() / ".remote/jobs" / id);
    write_file_atomic(yaml_of(id), fmt::format("command: python train.py --token=hidden\nenv_vars: {{}}\n"
                                               "exit_code: 0\njob_id: {}\njob_key: '{}'\npid: {}\nserver: a\n"
                                               "started: true\nstopped: false\ntags:\n- mine\n- torch\n",
                                               id, key, pid));
    make_folders(there(id));
    write_file_atomic(there(id) / "job.pid", fmt::format("{}\n", pid));
    if (!fs::exists(there(id) / "job.out")) {
      write_file_atomic(there(id) / "job.out", "said\n");
    }
  }
  // Runs a process like a labml_remote job: without our variables and supervisor.
  Subprocess run(const std::string& id) {
    make_folders(there(id));
    SubprocessSpec spec;
    spec.argv = {"sh", "-c", "exec sleep 1000 >job.out 2>job.err"};
    spec.directory = there(id);
    spec.new_session = true;
    return Subprocess(spec);
  }
  fs::path yaml_of(const std::string& id) const { return world.project() / ".remote/jobs" / id / "job.yaml"; }
  fs::path there(const std::string& id) { return world.there("a") / ".jobs" / id; }

  const std::string job_id = "5f0c2a2e4b7811ec9a0e0242ac130002";
  CommandWorld world;
};

TEST_F(CommandLabmlJobs, AreListedAndEndedAndTheirKeysAreNotGivenAgain) {
  Subprocess process = run(job_id);
  until([&] { return fs::exists(there(job_id) / "job.err"); }, "its files");
  record(job_id, 7, process.pid());
  const std::string yaml = read_file_if_there(yaml_of(job_id)).value_or("");
  EXPECT_EQ(world.job("b", "sleep 1000").key, 8);
  const auto listed = world.run({"job-list", "--json"}).json();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0]["key"], 7);
  EXPECT_EQ(listed[0]["id"], job_id);
  EXPECT_EQ(listed[0]["state"], "running");
  EXPECT_EQ(listed[0]["server"], "a");
  EXPECT_EQ(listed[0]["command"], "python train.py --token=********");
  EXPECT_EQ(listed[0]["tags"], nlohmann::json({"mine", "torch"}));
  EXPECT_EQ(world.run({"job-kill", "--job", "7"}).code, 0);
  EXPECT_EQ(process.wait(), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(world.stored(7).state, JobState::killed);
  EXPECT_EQ(read_file_if_there(yaml_of(job_id)), yaml);
}

// labml_remote treats every name in the local jobs folder, and every `job.pid` on the server, as one of its
// own jobs.
TEST_F(CommandLabmlJobs, NothingOfOursIsTakenForAJob) {
  record(job_id, 7, 1);
  const Job ours = world.ended_job("a", "echo out");
  EXPECT_EQ(world.run({"job-list", "--stopped", "--json"}).json().size(), 2U);
  EXPECT_THAT(world.run({"job-rsync", "--show-output"}),
              Ends(0, "", HasSubstr("a -> .remote/remote-jobs/" + ours.id.text())));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(world.project() / ".remote/jobs")) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(names, std::vector<std::string>{job_id});
  EXPECT_EQ(read_file(world.project() / ".remote/remote-jobs" / ours.id.text() / "job.out"), "out\n");
  EXPECT_FALSE(fs::exists(there(ours.id.text()) / "job.pid"));
}

TEST_F(CommandLabmlJobs, APidThatIsAnothersIsNotTheJob) {
  Subprocess stranger = run("0123456789abcdef0123456789abcdef");
  record(job_id, 3, stranger.pid());
  const auto listed = world.run({"job-list", "--stopped", "--json"}).json();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["state"], "lost");
  EXPECT_FALSE(fs::exists(there(job_id) / "supervisor")) << "nothing is claimed in its folder";
  world.run({"job-kill", "--job", "3"});
  EXPECT_TRUE(lives(stranger.pid()));
  stranger.kill(SIGKILL);
  stranger.wait();
}

}  // namespace
}  // namespace remote::test
