#include "agent/sweep/sweep_files.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using wire::SweepRunner;

class SweepFiles : public testing::Test, protected test::JobFolders {
 protected:
  void put(const std::string& name, const std::string& text) { put_file(folder.file(name), text); }
  std::string read(const std::string& name) {
    std::ifstream file(folder.file(name).string(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string refusal() {
    try {
      folder.make();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  }
  static int mode(const Path& path) { return static_cast<int>(look_at(path).value().st_mode & 07777); }

  const Path sweeps = jobs().jobs / ".sweeps";
  const SweepFolder folder{jobs(), new_id()};
  const std::string one = new_id();
  const std::string two = new_id();
};

TEST_F(SweepFiles, TheJournalKnowsWhatWasGivenAndWhatBegan) {
  folder.make();
  SweepDiary diary(folder);
  diary.open();
  EXPECT_TRUE(diary.write(wire::PointGiven{one, "b \"é\"\n%41"}));
  EXPECT_TRUE(diary.write(wire::PointGiven{two, "a"}));
  EXPECT_TRUE(diary.write(wire::PointReturned{two}));
  EXPECT_TRUE(diary.write(wire::PointBegun{one}));
  EXPECT_TRUE(diary.write(wire::PointBegun{two}));
  EXPECT_TRUE(diary.write(wire::PointNotStarted{two}));
  const SweepDiary::Content content = SweepDiary(folder).read();
  EXPECT_THAT(content.given, ElementsAre(Pair(one, "b \"é\"\n%41")));
  EXPECT_THAT(content.begun, ElementsAre(one));
  EXPECT_THAT(read("journal"), ::testing::StartsWith("give " + one + " b%20%22%C3%A9%22%0A%2541\n"));
  EXPECT_EQ(mode(folder.file("journal")), 0600);
}

TEST_F(SweepFiles, AnIncompleteLineOfTheJournalDoesNotCount) {
  folder.make();
  put("journal", "begin " + one + "\nbegin " + two.substr(0, 20));
  SweepDiary diary(folder);
  EXPECT_THAT(diary.read().begun, ElementsAre(one));
  diary.open();
  EXPECT_TRUE(diary.write(wire::PointBegun{two}));
  EXPECT_THAT(diary.read().begun, ElementsAre(one, two));
  put("journal", "begin ../x\nbegin\nodd " + one + "\ngive " + one + "\n\n");
  EXPECT_TRUE(diary.read().begun.empty());
  EXPECT_TRUE(diary.read().given.empty());
}

TEST_F(SweepFiles, AJournalThatCannotBeWrittenIsAnError) {
  folder.make();
  fs::create_symlink(path() / "elsewhere", fs::path(folder.file("journal").string()));
  SweepDiary diary(folder);
  EXPECT_THROW(diary.open(), std::runtime_error);
  EXPECT_FALSE(diary.write(wire::PointBegun{one}));
  EXPECT_FALSE(fs::exists(path() / "elsewhere"));
}

TEST_F(SweepFiles, ThePointsAndTheRunAreKept) {
  EXPECT_FALSE(folder.read_points());
  folder.make();
  ASSERT_TRUE(folder.write(wire::SweepPoints{.spec = {.command = "h\n"},
                                             .own = {{.command = "a\"\\\n"}, {.command = "é\xff"}},
                                             .slots = 2,
                                             .lease = wire::LeaseTerms{.gpus = 1},
                                             .retry = 3}));
  const wire::SweepPoints points = folder.read_points().value();
  EXPECT_EQ(points.spec.command, "h\n");
  EXPECT_EQ(points.own.at(0).command, "a\"\\\n");
  EXPECT_EQ(points.own.at(1).command, "é\xff");
  ASSERT_TRUE(points.lease);
  EXPECT_EQ(points.lease->gpus, 1);
  EXPECT_EQ(points.retry, 3);
  EXPECT_EQ(mode(folder.file("points")), 0600);
  ASSERT_TRUE(folder.write(wire::SweepRun{.own = "a",
                                          .servers = {"a", "b"},
                                          .tokens = {"x"},
                                          .address = "h",
                                          .port = 7,
                                          .points = {one, "", two},
                                          .busy = {}}));
  EXPECT_THAT(folder.read_run().value().points, ElementsAre(one, "", two));
  put("run", "{}");
  EXPECT_FALSE(folder.read_run());
  put("points", "");
  EXPECT_FALSE(folder.read_points());
}

TEST_F(SweepFiles, TheFolderIsOnlyForItsOwner) {
  const mode_t before = ::umask(0);
  folder.make();
  EXPECT_EQ(mode(sweeps), 0700);
  EXPECT_EQ(mode(folder.path()), 0700);
  fs::permissions(fs::path(sweeps.string()), fs::perms::all);
  folder.make();
  EXPECT_EQ(mode(sweeps), 0755);
  ::umask(before);
}

TEST_F(SweepFiles, AFolderOfAnotherUserIsRefused) {
  fs::create_directories(path() / "elsewhere");
  fs::create_directory_symlink(path() / "elsewhere", fs::path(sweeps.string()));
  EXPECT_THAT(refusal(), HasSubstr("is not a folder"));
  fs::remove(fs::path(sweeps.string()));
  if (::geteuid() == 0) {
    fs::create_directories(fs::path(sweeps.string()));
    ASSERT_EQ(::chown(sweeps.c_str(), 1, 1), 0);
    EXPECT_THAT(refusal(), HasSubstr("belongs to another user"));
  }
  EXPECT_TRUE(fs::is_empty(path() / "elsewhere"));
}

TEST_F(SweepFiles, TheStateOfTheSupervisor) {
  EXPECT_EQ(folder.find_state(host()), SweepRunner::none);
  folder.make();
  EXPECT_EQ(folder.find_state(host()), SweepRunner::done);
  put("runner", this_process() + " " + read_boot_id(host()) + "\n");
  EXPECT_EQ(folder.find_state(host()), SweepRunner::alive);
  EXPECT_EQ(folder.find_supervisor(host()).value().pid, ::getpid());
  put("stopped", "\n");
  EXPECT_EQ(folder.find_state(host()), SweepRunner::alive);
  put("runner", this_process() + " another-boot\n");
  EXPECT_EQ(folder.find_state(host()), SweepRunner::stopped);
  fs::remove(fs::path(folder.file("stopped").string()));
  EXPECT_EQ(folder.find_state(host()), SweepRunner::dead);
  for (const std::string& words :
       {this_process(), std::string(), this_process() + "1 " + read_boot_id(host())}) {
    put("runner", words + "\n");
    EXPECT_EQ(folder.find_state(host()), SweepRunner::dead) << words;
  }
}

}  // namespace
}  // namespace remote::agent
