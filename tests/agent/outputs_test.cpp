#include "agent/outputs/outputs.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/matches.hpp"
#include "agent/job_journal.hpp"
#include "agent/kept_replies.hpp"

// Paths, patterns, and the files that a launch has written.

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::PathKind;

class AgentOutputs : public ::testing::Test {
 protected:
  static constexpr const char* first = "0123456789abcdef0123456789abcdef";
  static constexpr const char* second = "1123456789abcdef0123456789abcdef";

  // A project file with this modification time, in tenths of a second.
  void put(const std::string& name, int time = 50) const {
    fake.put(project() / name, name);
    set_time(project() / name, time);
  }
  void put_end(const std::string& job, int time) const {
    fake.put(project() / job / "journal.jsonl", test::format_end("exit 0 1700000000000 supervisor"));
    set_time(project() / job / "journal.jsonl", time);
  }
  static void set_time(const fs::path& path, int time) {
    const timespec at{1'700'000'000 + time / 10, time % 10 * 100'000'000};
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::vector<PathKind> find_kinds(std::vector<std::string> paths) const {
    return find_path_kinds(fake.host, {std::move(paths)}).kinds;
  }
  std::vector<std::string> match(const std::string& pattern) const {
    return find_matching_names(fake.host, {"~/my [project]", pattern}).names;
  }
  std::vector<wire::WrittenFile> find_written(std::vector<std::string> outputs) const {
    test::KeptReplies<wire::WrittenReply> replies;
    wire::WrittenRequest request{{"~/my [project]", ".jobs"}, first, {first, second}, std::move(outputs)};
    request.began = 1'700'000'001;
    request.ended = ended;
    answer_written(fake.host, request, replies);
    std::vector<wire::WrittenFile> files;
    for (wire::WrittenReply& part : replies.parts()) {
      files.insert(files.end(), part.files.begin(), part.files.end());
    }
    return files;
  }
  std::vector<std::string> find_names(std::vector<std::string> outputs) const {
    std::vector<std::string> names;
    for (const wire::WrittenFile& file : find_written(std::move(outputs))) {
      names.push_back(file.name);
    }
    return names;
  }
  fs::path project() const { return fake.home() / "my [project]"; }

  test::FakeHost fake;
  std::optional<std::int64_t> ended{};
};

TEST_F(AgentOutputs, LooksAtPaths) {
  fake.put(fake.home() / "a file", "");
  fs::create_symlink("a file", fake.home() / "link");
  fs::create_symlink("nothing", fake.home() / "dangling");
  fs::create_symlink(".", fake.home() / "folder link");
  EXPECT_THAT(
      find_kinds({"~/a file", "~", "link", "~/dangling", "~/nothing", "~/folder link", "~/folder link/",
                  (fake.home() / "a file").string(), "~/a file/x"}),
      ElementsAre(PathKind::there, PathKind::there, PathKind::link, PathKind::missing, PathKind::missing,
                  PathKind::folder_link, PathKind::there, PathKind::there, PathKind::missing));
  EXPECT_THAT(find_kinds({}), IsEmpty());
}

TEST_F(AgentOutputs, FindsMatchingNames) {
  for (const char* name : {"1.pt", "2 *.pt", ".3.pt", "line\nbreak.pt", "\xe9.pt"}) {
    put(std::string("a b/") + name);
  }
  put("a c.txt");
  put(".hidden/1.pt");
  fs::create_symlink("nothing", project() / "a b/4.pt");
  fs::create_symlink("a b", project() / "link");
  EXPECT_THAT(match("a*/*.pt"), ElementsAre("a b/1.pt", "a b/2 *.pt", "a b/4.pt", "a b/\xe9.pt"));
  EXPECT_THAT(match("*/.*.pt"), ElementsAre("a b/.3.pt", "link/.3.pt"));
  EXPECT_THAT(match(".h*/*"), ElementsAre(".hidden/1.pt"));
  EXPECT_THAT(match("a*/"), ElementsAre("a b/")) << "folders only";
  EXPECT_THAT(match("a b/[12].pt"), ElementsAre("a b/1.pt"));
  EXPECT_THAT(match("*/?.pt"),
              ElementsAre("a b/1.pt", "a b/4.pt", "a b/\xe9.pt", "link/1.pt", "link/4.pt", "link/\xe9.pt"));
  EXPECT_THAT(match("*/*.zip"), IsEmpty());
  EXPECT_THAT(match("*/nothing/*"), IsEmpty());
  EXPECT_THAT(match("a b/\\1.pt"), IsEmpty()) << "a backslash is a character like any other";
  EXPECT_THAT(find_matching_names(fake.host, {"~/nothing", "*"}).names, IsEmpty());
  EXPECT_THAT(
      find_matching_names(fake.host, {"/", (fake.home() / "my ?project?/a b/*.pt").string().substr(1)}).names,
      ::testing::SizeIs(4));
}

TEST_F(AgentOutputs, ManyMatchesAreCutOff) {
  for (int i = 0; i < 20; ++i) {
    put("x" + std::to_string(i));
  }
  EXPECT_EQ(find_matches(project(), "x*", 7).size(), 7U);
  EXPECT_EQ(find_matches(project(), "x*", 21).size(), 20U);
}

TEST_F(AgentOutputs, FindsFilesWrittenSinceTheFirstJobBegan) {
  const std::string job = std::string(".jobs/") + first;
  put(job + "/spec.json", 30);
  put("checkpoints/old.pt", 30);  // not newer
  put("checkpoints/new.pt", 31);
  put("checkpoints/sub/line\nbreak", 80);
  put("out-1.csv", 99);
  put("out-2.csv", 29);
  put("other.csv", 99);
  fs::create_symlink("/etc/passwd", project() / "checkpoints/link");
  fs::create_symlink("..", project() / "checkpoints/up");
  ASSERT_EQ(::mkfifo((project() / "checkpoints/fifo").c_str(), 0600), 0);
  EXPECT_THAT(find_names({"checkpoints", "out-*.csv", "nothing"}),
              ElementsAre("checkpoints/new.pt", "checkpoints/sub/line\nbreak", "out-1.csv"));
  const auto files = find_written({"out-*.csv"});
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].mtime, 1'700'000'009);
  EXPECT_EQ(files[0].size, 9U);
  // A link is followed if it is an output itself.
  fs::create_symlink("checkpoints", project() / "linked");
  fs::create_symlink("out-1.csv", project() / "last.csv");
  fs::create_symlink("nothing", project() / "dangling");
  EXPECT_THAT(find_names({"link*", "last.csv", "dangling"}),
              ElementsAre("linked/new.pt", "linked/sub/line\nbreak", "last.csv"));
}

TEST_F(AgentOutputs, FilesWrittenAfterTheLastResultAreOfAnotherLaunch) {
  const std::string job = std::string(".jobs/") + first;
  const std::string other = std::string(".jobs/") + second;
  put(job + "/spec.json", 10);
  put("a", 50);
  put("b", 51);
  put("c", 71);
  put_end(job, 50);
  put(other + "/spec.json", 11);
  EXPECT_THAT(find_names({"?"}), ElementsAre("a", "b", "c")) << "the second job still runs";
  put(other + "/journal.jsonl", 70);
  EXPECT_THAT(find_names({"?"}), ElementsAre("a", "b", "c")) << "its journal has no end";
  put_end(other, 70);
  EXPECT_THAT(find_names({"?"}), ElementsAre("a", "b"));
  fs::remove_all(project() / other);
  EXPECT_THAT(find_names({"?"}), ElementsAre("a")) << "that job was on another server, or is removed";
}

TEST_F(AgentOutputs, UsesTheGivenTimesIfTheJobWasRemoved) {
  put("a", 10);
  put("b", 11);
  put("c", 70);
  put("d", 71);
  EXPECT_THAT(find_names({"?"}), ElementsAre("b", "c", "d"));
  ended = 1'700'000'007;
  EXPECT_THAT(find_names({"?"}), ElementsAre("b", "c"));
  fs::create_directories(project() / ".jobs" / first / "spec.json");
  EXPECT_THAT(find_names({"?"}), ElementsAre("b", "c"));
}

TEST_F(AgentOutputs, SendsManyFilesInParts) {
  put(std::string(".jobs/") + first + "/spec.json", 10);
  const std::string long_name(250, 'x');
  for (int i = 0; i < 2100; ++i) {
    put("many/" + long_name + std::to_string(i));
  }
  EXPECT_EQ(find_written({"many"}).size(), 2100U);
  test::KeptReplies<wire::WrittenReply> replies;
  answer_written(fake.host, {{"~/my [project]", ".jobs"}, first, {}, {"many"}}, replies);
  EXPECT_EQ(replies.parts().size(), 3U);
}

}  // namespace
}  // namespace remote::agent
