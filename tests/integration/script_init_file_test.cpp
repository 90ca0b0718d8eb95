// The shared file of a launch on the servers: checks before a launch, and its removal when jobs end.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "servers/init_file.hpp"
#include "support/script_test.hpp"

namespace remote::jobs {
namespace {

using ::testing::HasSubstr;

class JobInitFile : public test::ScriptTest {
 protected:
  JobInitFile() {
    fs::create_directories(place());
    fs::create_directories(disk);
  }
  // As a launch does on its first server.
  void make() {
    ASSERT_EQ(make_in(disk).folder, shared.string());
    write_file_atomic(shared / "store", "");
  }
  JobId start_with_file(const std::string& command, std::size_t jobs, const JobId& id = JobId::random()) {
    StartRequest request;
    request.id = id;
    request.process.command = command;
    request.files.emplace_back("init_file", servers::init_file_text(jobs, shared.string()) + "\n");
    EXPECT_EQ(start_all({request}).front().outcome, StartOutcome::started);
    return request.id;
  }
  wire::InitFileReply make_in(const std::string& folder) {
    return servers::make_init_file(*connection, folder, launch, false, cancel);
  }
  wire::InitFileReply see_in(const std::string& folder) {
    return servers::see_init_file(*connection, folder, launch, "a", cancel);
  }

  const JobId launch = JobId::random();
  const std::string disk = (place().parent_path() / "a disk").string();
  const fs::path shared = fs::path(disk) / (".remote-init-" + launch.text());
};

TEST_P(JobInitFile, IsSeenByAllAndRemovedAgain) {
  make();
  EXPECT_EQ(see_in(disk).folder, shared.string());
  EXPECT_THAT(make_in(disk).failure, HasSubstr("cannot write in " + disk));
  const std::string other = disk + "/other";
  EXPECT_THAT(see_in(other).failure, HasSubstr("there is no folder " + other));
  fs::create_directories(other);
  EXPECT_THAT(see_in(other).failure, HasSubstr("is not the same folder as on a"));
  const std::string odd = disk + "/a?b";
  EXPECT_THAT(servers::make_init_file(*connection, odd, launch, true, cancel).failure,
              HasSubstr("torch does not accept"));
  servers::drop_init_file(*connection, disk, launch, cancel);
  EXPECT_FALSE(fs::exists(shared));
}

TEST_P(JobInitFile, IsRemovedByTheLastJobOfTheLaunch) {
  make();
  const JobId first = start_with_file("true", 2);
  wait_end(first);
  until([&] { return fs::exists(shared / ("ended." + first.text())); }, "the first job's mark");
  EXPECT_TRUE(fs::exists(shared / "store")) << "the second one may still need it";
  const JobId second = start_with_file("exit 3", 2);
  wait_end(second);
  until([&] { return !fs::exists(shared); }, "the file's removal");
}

TEST_P(JobInitFile, IsRemovedByAKillAndForASupervisorThatIsDead) {
  make();
  const JobId killed = start_with_file("exec sleep 1000", 2);
  const JobId orphan = start_with_file("exec sleep 1000", 2);
  ::kill(supervisor_of(orphan), SIGKILL);
  EXPECT_EQ(kill(killed).outcome, StopOutcome::killed);
  EXPECT_TRUE(fs::exists(shared / "store"));
  EXPECT_EQ(kill(orphan).outcome, StopOutcome::killed);
  EXPECT_FALSE(fs::exists(shared));
}

TEST_P(JobInitFile, IsRemovedWhenAJobIsFoundDead) {
  make();
  const JobId id = start_with_file("exec sleep 1000", 1);
  const std::optional<int> pid = status(id).pid;
  ASSERT_TRUE(pid.has_value());
  ::kill(supervisor_of(id), SIGKILL);
  ::kill(*pid, SIGKILL);
  until([&] { return status(id).phase == Phase::gone; }, "the job's death");
  EXPECT_FALSE(fs::exists(shared));
}

TEST_P(JobInitFile, NothingElseIsRemoved) {
  make();
  const fs::path own = fs::path(disk) / "mine";
  fs::create_directories(own);
  write_file_atomic(own / "store", "data");
  // A link has replaced the folder.
  fs::rename(shared, fs::path(disk) / "elsewhere");
  fs::create_directory_symlink(own, shared);
  wait_end(start_with_file("true", 1));
  servers::drop_init_file(*connection, disk, launch, cancel);
  expect_nothing_left();
  EXPECT_EQ(read_file(own / "store"), "data");
  // Files that do not belong to the launch are kept, and so is the folder.
  fs::remove(shared);
  fs::rename(fs::path(disk) / "elsewhere", shared);
  write_file_atomic(shared / "notes", "mine");
  wait_end(start_with_file("true", 1));
  until([&] { return !fs::exists(shared / "store"); }, "the file's removal");
  EXPECT_EQ(read_file(shared / "notes"), "mine");
}

TEST_P(JobInitFile, NoLinkInAFolderOfAnotherUserIsFollowed) {
  const fs::path precious = fs::path(disk) / "precious";
  write_file_atomic(precious, "data");
  const JobId id = JobId::random();
  fs::create_directory(shared);  // in place of the launch's own file
  write_file_atomic(shared / "launch", launch.text() + "\n");
  fs::create_symlink(precious, shared / ("ended." + id.text()));
  wait_end(start_with_file("true", 2, id));
  expect_nothing_left();
  EXPECT_EQ(read_file(precious), "data");
}

TEST_P(JobInitFile, AFifoDelaysNoSupervisor) {
  fs::create_directory(shared);
  ASSERT_EQ(::mkfifo((shared / "launch").c_str(), 0600), 0);
  const JobId id = start_with_file("true", 1);
  wait_end(id);
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Shells, JobInitFile, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
