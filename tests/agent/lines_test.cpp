#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job/answers.hpp"
#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LastLines : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::vector<std::string>& files, int count = 2) {
    return read_last_lines(jobs.host(), {.place = jobs.place(), .ids = {id}, .files = files, .count = count})
        .lines;
  }
  std::vector<std::string> last_of(const std::string& text) {
    jobs.put(id, "job.err", text);
    return read({"job.err"});
  }

  test::JobFolders jobs;
  const std::string id = jobs.make_ended("exit 1");
};

TEST_F(LastLines, AreRead) {
  EXPECT_THAT(last_of("1\n@remote1 end\n3"), ElementsAre("@remote1 end", "3"));
  EXPECT_THAT(last_of("\xff" + std::string(99999, 'x') + "\n\n"), ElementsAre(std::string(2000, 'x'), ""));
  EXPECT_THAT(last_of(""), IsEmpty());
  EXPECT_THAT(last_of("1\r\n10%\r20%\r"), ElementsAre("1\r", "20%\r"));
  jobs.put(id, "job.err", "1\n2\n");
  EXPECT_THAT(read({"job.err"}, 0), IsEmpty());
  EXPECT_THAT(read({"job.err"}, 1), ElementsAre("2"));
}

TEST_F(LastLines, AreOfTheLastAttemptOnly) {
  const std::string anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n";
  EXPECT_THAT(last_of("1\n" + anew + "2\n"), ElementsAre("2"));
  EXPECT_THAT(last_of("1\n" + anew), IsEmpty());
  EXPECT_THAT(last_of(anew + anew), IsEmpty());
  EXPECT_THAT(last_of(anew + "\n2"), ElementsAre("", "2"));
  EXPECT_THAT(last_of("1\nremote: the workers begin anew (restart 1) at 2026-11-24T11:58:19.000Z\n"),
              IsEmpty());
  EXPECT_THAT(last_of("1\nremote: the point begins again (retry 1 of 1) after exit 1\n"), IsEmpty());
}

TEST_F(LastLines, OfSeveralFilesAndJobs) {
  const std::string other = jobs.make_ended("exit 1", {{"job.out", "c\n"}, {"ranks/0.err", "d\n"}});
  jobs.put(id, "job.err", "a\n");
  jobs.put(id, "job.out", "b\n");
  const wire::LinesRequest request{.place = jobs.place(),
                                   .ids = {id, test::JobFolders::new_id(), other},
                                   .files = {"ranks/0.err", "job.err", "job.out"},
                                   .count = 5};
  EXPECT_THAT(read_last_lines(jobs.host(), request).lines, ElementsAre("a", "b", "d", "c"));
}

TEST_F(LastLines, OfFilesInTheJobsFolderAlone) {
  test::HostFolder::put(jobs.folder(id).parent_path() / "secret", "secret\n");
  jobs.put(id, "a/b/c", "secret\n");
  fs::create_symlink("..", jobs.folder(id) / "up");
  ASSERT_EQ(::mkfifo((jobs.folder(id) / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read({"../secret", "..", ".", "", "a", "a/../../secret", "a/b/c", "up/secret", "/etc/passwd",
                    "pipe", "a/", "//etc/passwd", "a b"}),
              IsEmpty());
}

TEST_F(LastLines, FitIntoOneMessage) {
  std::string text;
  for (int line = 0; line < 10'000; ++line) {
    text += "loss 0.5\n";
  }
  std::vector<std::string> ids;
  for (int job = 0; job < 40; ++job) {
    ids.push_back(jobs.make_ended("exit 0", {{"job.out", text + std::to_string(job) + "\n"}}));
  }
  const wire::LinesRequest request{.place = jobs.place(), .ids = ids, .files = {"job.out"}, .count = 10'000};
  const auto lines = read_last_lines(jobs.host(), request).lines;
  EXPECT_LE(lines.size(), 65536U);
  std::size_t size = 0;
  for (const std::string& line : lines) {
    size += line.size() + 4;
  }
  EXPECT_LT(size, 1'000'000U);
  EXPECT_GT(size, 700'000U);
  EXPECT_EQ(lines.back(), "39") << "each file has its share";
}

}  // namespace
}  // namespace remote::agent
