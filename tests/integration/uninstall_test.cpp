// Uninstalling with the local shell, without ssh.

#include "jobs/uninstall.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/files.hpp"
#include "support/job_journal.hpp"
#include "support/script_test.hpp"

namespace remote::jobs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Reason = UninstallResult::Leftover::Reason;
using Leftovers = std::vector<std::pair<std::string, Reason>>;

class Uninstall : public test::ScriptTest {
 protected:
  UninstallAnswer uninstall(bool dry_run = false) {
    return jobs::uninstall(*connection,
                           {.folder = jobs_folder,
                            .agent_folder = "~/agent folder/",
                            .dry_run = dry_run,
                            .shared = {shared.string()}},
                           Cancel());
  }
  static Leftovers left_by(const UninstallAnswer& answer) {
    Leftovers left;
    for (const UninstallResult::Leftover& leftover : answer.left) {
      left.emplace_back(leftover.path, leftover.reason);
    }
    return left;
  }
  fs::path make_folder(const fs::path& path, std::chrono::minutes age = std::chrono::minutes(0)) {
    fs::create_directories(path);
    write_file_atomic(path / "file", "text", 0600);
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return path;
  }
  JobId end_job() {
    const JobId id = start("echo out");
    wait_end(id);
    expect_nothing_left();
    return id;
  }

  const fs::path home = servers.home("a");
  const fs::path cache = home / ".cache/remote";
  const fs::path shared = home / "shared folder";
  const std::string digest = std::string(64, 'a');
};

TEST_P(Uninstall, RemovesProgramsAndNothingElse) {
  const JobId id = end_job();
  make_folder(home / "agent folder" / digest);
  fs::rename(home / "agent folder" / digest / "file", home / "agent folder" / digest / "remote-agent");
  make_folder(home / "agent folder/bin");
  make_folder(home / "agent folder" / std::string(64, 'b'));  // has no agent
  make_folder(place() / "src");
  const fs::path old_agent = make_folder(shared / ".remote-agent.abcXYZ", std::chrono::minutes(5));
  const fs::path old_program = make_folder(shared / ".remote-new.abc123", std::chrono::minutes(5));
  const fs::path results = shared / ("remote-" + std::to_string(::getuid()));
  fs::create_directories(results);
  const fs::path bin = place() / ".jobs/.bin";
  ASSERT_TRUE(fs::exists(bin));

  const UninstallAnswer found = uninstall(true);
  EXPECT_THAT(found.removed, Contains(bin.string()));
  EXPECT_THAT(found.removed, Contains(old_agent.string()));
  EXPECT_THAT(found.left, IsEmpty());
  EXPECT_TRUE(fs::exists(cache) && fs::exists(bin) && fs::exists(old_agent) && fs::exists(results));

  const UninstallAnswer answer = uninstall();
  EXPECT_THAT(answer.removed, ::testing::UnorderedElementsAreArray(found.removed));
  EXPECT_THAT(left_by(answer), IsEmpty());
  EXPECT_THAT(answer.running, IsEmpty());
  EXPECT_FALSE(fs::exists(cache) || fs::exists(bin) || fs::exists(old_agent) || fs::exists(old_program) ||
               fs::exists(results) || fs::exists(home / "agent folder" / digest));
  EXPECT_TRUE(fs::exists(home / "agent folder/bin/file"));
  EXPECT_TRUE(fs::exists(home / "agent folder" / std::string(64, 'b') / "file"));
  EXPECT_TRUE(fs::exists(place() / "src/file"));
  EXPECT_EQ(file(id, "job.out"), "out\n");

  // The program is installed again, and jobs start.
  EXPECT_EQ(wait_end(start("true")).phase, Phase::ended);
}

TEST_P(Uninstall, RefusesWhileJobsRun) {
  const JobId id = start("sleep 60");
  const RemoteFolder other{"~/other", ".jobs"};
  const JobId more = JobId::random();
  ASSERT_EQ(ask_start(agent(), {.folder = other, .requests = {{more, {"sleep 60", "", {}}}}}).at(0).outcome,
            StartOutcome::started);
  UninstallAnswer answer = uninstall();
  std::vector<std::pair<std::string, std::string>> running;
  for (const UninstallResult::RunningJob& job : answer.running) {
    running.emplace_back(job.id ? job.id->text() : "", job.project);
  }
  EXPECT_THAT(running, UnorderedElementsAre(std::pair(id.text(), fs::canonical(place()).string()),
                                            std::pair(more.text(), fs::canonical(home / "other").string())));
  EXPECT_THAT(answer.removed, IsEmpty());
  EXPECT_TRUE(fs::exists(cache));
  ask_stop(agent(), {.folder = other, .ids = {more}, .signal = SIGKILL});

  // A job whose supervisor is dead
  ::kill(supervisor_of(id), SIGKILL);
  answer = uninstall();
  ASSERT_EQ(answer.running.size(), 1U);
  EXPECT_EQ(answer.running[0].id, id);
  kill(id, SIGKILL, 0);
  expect_nothing_left();
  EXPECT_THAT(uninstall().running, IsEmpty());
  EXPECT_FALSE(fs::exists(cache));
}

TEST_P(Uninstall, FollowsNoLinksAndReportsWhatItLeaves) {
  end_job();
  const fs::path precious = make_folder(home / "precious");
  const fs::path bin = place() / ".jobs/.bin";
  fs::remove_all(bin);
  for (const fs::path& link :
       {bin, cache / digest, shared / ".remote-new.abc", shared / ".remote-agent.abc"}) {
    fs::create_directories(link.parent_path());
    fs::create_directory_symlink(precious, link);
  }
  const fs::path recent = make_folder(shared / ".remote-agent.abcXYZ");
  const fs::path strange = make_folder(cache / "my\nfile *");
  const std::string uid = std::to_string(::getuid());
  const fs::path results = make_folder(shared / ("remote-" + uid));
  write_file_atomic(shared / (".remote-lease." + uid + ".abcdef"), "", 0600);
  EXPECT_THAT(left_by(uninstall()),
              UnorderedElementsAre(
                  std::pair(bin.string(), Reason::link), std::pair((cache / digest).string(), Reason::link),
                  std::pair((cache / "my\\x0afile *").string(), Reason::unknown),
                  std::pair(recent.string(), Reason::recent), std::pair(results.string(), Reason::results),
                  std::pair((shared / (".remote-lease." + uid + ".abcdef")).string(), Reason::lease)));
  EXPECT_TRUE(fs::exists(precious / "file") && fs::exists(strange / "file") && fs::exists(recent / "file"));
  EXPECT_TRUE(fs::is_symlink(shared / ".remote-new.abc"));
}

TEST_P(Uninstall, KeepsWhatJobsOnOtherMachinesMayUse) {
  end_job();
  const JobId id = JobId::random();
  fs::create_directories(folder(id));
  write_file_atomic(folder(id) / "supervisor", "10 20 another-boot 30\n", 0600);
  EXPECT_THAT(left_by(uninstall()),
              ElementsAre(std::pair((place() / ".jobs/.bin").string(), Reason::unfinished)));
  write_file_atomic(folder(id) / "journal.jsonl", test::format_end(0), 0600);
  EXPECT_THAT(left_by(uninstall()), IsEmpty());
}

TEST_P(Uninstall, KeepsFilesOfFrozenLaunchesThatAreNotInTheProject) {
  const fs::path trees = make_folder(place() / ".jobs/.trees");
  write_file_atomic(trees / (digest + ".open"), "", 0600);
  EXPECT_THAT(left_by(uninstall()), ElementsAre(std::pair(trees.string(), Reason::unmoved)));
  fs::remove(trees / (digest + ".open"));
  EXPECT_THAT(left_by(uninstall()), IsEmpty());
  EXPECT_FALSE(fs::exists(place() / ".jobs"));
}

INSTANTIATE_TEST_SUITE_P(Shells, Uninstall, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
