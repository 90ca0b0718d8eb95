#include "agent/launch/launch_files.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::LaunchSpec make_spec() {
  wire::LaunchSpec spec;
  spec.tokens = {"0123abcd"};
  spec.server = "gpu é\n";
  spec.servers = {{"a", 2, "a.local"}, {"gpu é\n", 1, ""}};
  spec.jobs = {{"00000000000000000000000000000001", 2}};
  spec.address = "::1";
  spec.port = 7;
  wire::RestartSpec& restarts = spec.restarts.emplace();
  restarts.most = 3;
  restarts.causes = {wire::RestartOn::lost};
  restarts.checkpoint_files = "e*.pt";
  spec.hang = wire::HangSpec{.seconds = 60, .response = wire::HangResponse::restart};
  return spec;
}

class LaunchFiles : public ::testing::Test {
 protected:
  static mode_t read_mode(const fs::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& name, const std::string& text) const {
    test::HostFolder::put(folder.path() / name, text);
  }

  test::HostFolder folder;
  Path job = folder.path().string();
};

TEST_F(LaunchFiles, TheSpecIsKept) {
  EXPECT_FALSE(read_launch_spec(job));
  ASSERT_TRUE(write_launch_spec(job, make_spec()));
  EXPECT_EQ(read_launch_spec(job), make_spec());
  EXPECT_EQ(read_mode(folder.path() / "lifeline.json"), 0600U) << "it has a secret";
}

TEST_F(LaunchFiles, AnInvalidSpecIsRefused) {
  for (const char* text : {"", "{}", "[]", "{\"tokens\":", "x"}) {
    put("lifeline.json", text);
    EXPECT_FALSE(read_launch_spec(job)) << text;
  }
  wire::LaunchSpec spec = make_spec();
  spec.server = "c";  // not part of the launch
  ASSERT_TRUE(write_launch_spec(job, spec));
  EXPECT_FALSE(read_launch_spec(job));
  spec = make_spec();
  spec.jobs.clear();
  ASSERT_TRUE(write_launch_spec(job, spec));
  EXPECT_FALSE(read_launch_spec(job));
  spec = make_spec();
  spec.jobs.front().id = "../x";
  ASSERT_TRUE(write_launch_spec(job, spec));
  EXPECT_FALSE(read_launch_spec(job));
  fs::remove(folder.path() / "lifeline.json");
  ASSERT_TRUE(write_launch_spec(folder.path() / "..", make_spec()));
  fs::rename(folder.path() / "../lifeline.json", folder.path() / "elsewhere");
  fs::create_symlink(folder.path() / "elsewhere", folder.path() / "lifeline.json");
  EXPECT_FALSE(read_launch_spec(job)) << "a link is not followed";
}

TEST_F(LaunchFiles, TheJournalKeepsItsEntries) {
  const std::vector<wire::LaunchEntry> entries{
      wire::ServerHeard{"b é%41 x"},           wire::ServerGone{"c\n", wire::GoneHow::lost},
      wire::ServerLeftOut{"d", wire::Hang{5}}, wire::LaunchEnding{wire::ServerLoss{"b"}},
      wire::AttemptsOver{wire::RankEnded{7}},  wire::AttemptsOver{std::nullopt, NoRestart::stopped},
  };
  EXPECT_THAT(read_launch_journal(job), IsEmpty());
  for (const wire::LaunchEntry& entry : entries) {
    ASSERT_TRUE(append_to_launch_journal(job, entry));
  }
  EXPECT_EQ(read_launch_journal(job), entries);
  EXPECT_EQ(read_mode(folder.path() / "lifeline.journal"), 0600U);
  const std::string text = read("lifeline.journal");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), entries.size());
}

TEST_F(LaunchFiles, DamagedLinesAreSkipped) {
  const wire::LaunchEntry a = wire::ServerHeard{"a"};
  const wire::LaunchEntry b = wire::ServerHeard{"b"};
  ASSERT_TRUE(append_to_launch_journal(job, a));
  const std::string line = read("lifeline.journal");
  put("lifeline.journal", "\nx\n{}\n{\"kind\":\"dance\"}\n{\"kind\":\"heard\"}\n" + line + line.substr(0, 9));
  EXPECT_THAT(read_launch_journal(job), ElementsAre(a));
  // The next entry is not merged with the damaged line.
  ASSERT_TRUE(append_to_launch_journal(job, b));
  EXPECT_THAT(read_launch_journal(job), ElementsAre(a, b));
  put("lifeline.journal", line + line.substr(0, line.size() - 1));
  EXPECT_THAT(read_launch_journal(job), ElementsAre(a)) << "a last line without its end may be incomplete";
}

TEST_F(LaunchFiles, OfAHugeJournalTheBeginningIsRead) {
  const wire::LaunchEntry a = wire::ServerHeard{"a"};
  ASSERT_TRUE(append_to_launch_journal(job, a));
  put("lifeline.journal",
      read("lifeline.journal") + std::string((1 << 20) + 100, '\n') + read("lifeline.journal"));
  EXPECT_THAT(read_launch_journal(job), ElementsAre(a));
}

TEST_F(LaunchFiles, OnlyARegularFileIsAJournal) {
  put("other", "");
  fs::create_symlink(folder.path() / "other", folder.path() / "lifeline.journal");
  EXPECT_FALSE(append_to_launch_journal(job, wire::ServerHeard{"a"}));
  EXPECT_EQ(read("other"), "");
  fs::remove(folder.path() / "lifeline.journal");
  ASSERT_EQ(::mkfifo((folder.path() / "lifeline.journal").c_str(), 0600), 0);
  EXPECT_FALSE(append_to_launch_journal(job, wire::ServerHeard{"a"}));
  EXPECT_THAT(read_launch_journal(job), IsEmpty());
}

TEST_F(LaunchFiles, AreRemovedAtTheEnd) {
  ASSERT_TRUE(write_launch_spec(job, make_spec()));
  ASSERT_TRUE(append_to_launch_journal(job, wire::ServerHeard{"a"}));
  put("lifeline.pid", "1 2 boot\n");
  put("lifeline", "ok\n");
  remove_launch_files(job);
  remove_launch_files(job);
  EXPECT_FALSE(fs::exists(folder.path() / "lifeline.json"));
  EXPECT_FALSE(fs::exists(folder.path() / "lifeline.journal"));
  EXPECT_FALSE(fs::exists(folder.path() / "lifeline.pid"));
  EXPECT_TRUE(fs::exists(folder.path() / "lifeline"));
}

}  // namespace
}  // namespace remote::agent
