#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/job/answers.hpp"
#include "agent/job_folders.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::ProcessEnd;

class Workers : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) { jobs.put(id, name, text); }
  std::map<int, wire::FailedWorker> read(int lines = 2) {
    std::map<int, wire::FailedWorker> workers;
    const auto reply = read_workers(jobs.host(), {.place = jobs.place(), .id = id, .lines = lines});
    EXPECT_GT(reply.now.count(), 0);
    for (const wire::FailedWorker& worker : reply.workers) {
      EXPECT_TRUE(workers.emplace(worker.rank, worker).second);
    }
    return workers;
  }

  test::JobFolders jobs;
  const std::string id = jobs.make_ended("exit 1");
};

TEST_F(Workers, AreReported) {
  EXPECT_THAT(read(), IsEmpty());
  put("failures/rank.3", "1700000000123\nTraceback\n  File\nValueError: a bad batch\n");
  put("failures/rank.0", "1700000000456\nConnection closed by peer\n@remote1 end");
  put("failures/agent",
      "2 signal 9 1700000001042\n3 exit 1 1700000002000 n2\n1 exit 3 1700000002001 slurm@$(id)\n"
      "4 signal 6 1700000002002 slurm@n-4.x\n5 exit 1 1700000002003 torchrun\n");
  put("ranks/2.err", "step 1\nstep 2\nSegmentation fault\n");
  put("ranks/1.err", "Connection reset by peer\n");
  const auto workers = read();
  ASSERT_EQ(workers.size(), 6U);
  EXPECT_EQ(workers.at(4).end->node, "n-4.x");
  EXPECT_EQ(workers.at(5).end->node, "");
  EXPECT_EQ(workers.at(5).end->by, "torchrun");
  EXPECT_EQ(workers.at(3).raised_at, milliseconds(1700000000123));
  EXPECT_THAT(workers.at(3).last_lines, ElementsAre("  File", "ValueError: a bad batch"));
  EXPECT_FALSE(workers.at(3).after_peer);
  EXPECT_EQ(workers.at(3).end->how, ProcessEnd::exited(1));
  EXPECT_EQ(workers.at(3).end->node, "n2");
  EXPECT_EQ(workers.at(1).end->node, "") << "it is not the name of a node";
  EXPECT_TRUE(workers.at(0).after_peer);
  EXPECT_EQ(workers.at(0).last_lines.back(), "@remote1 end");
  EXPECT_FALSE(workers.at(0).end);
  EXPECT_EQ(workers.at(2).end->how, ProcessEnd::signalled(9));
  EXPECT_EQ(workers.at(2).end->at, milliseconds(1700000001042));
  EXPECT_THAT(workers.at(2).last_lines, ElementsAre("step 2", "Segmentation fault"));
  EXPECT_FALSE(workers.at(2).after_peer);
  EXPECT_FALSE(workers.at(2).raised_at);
  EXPECT_TRUE(workers.at(1).after_peer);
}

TEST_F(Workers, TheFirstRecordOfARankCounts) {
  put("failures/agent", "3 exit 1 1700000002000\n3 exit 2 1700000002001\n3 never 0 1700000002001 claim\n");
  EXPECT_EQ(read().at(3).end->how, ProcessEnd::exited(1));
  put("failures/agent", "3 never 0 1700000002001 claim\n3 exit 1\n3 exit 2 1700000002001\n");
  EXPECT_EQ(read().at(3).end->how, ProcessEnd::exited(2));
}

// The job writes these files, so they may contain anything.
TEST_F(Workers, OddFilesAreIgnored) {
  put("failures/rank.3", "1700000000123\nTraceback\n");
  fs::create_directory(jobs.folder(id) / "failures/rank.7");
  ASSERT_EQ(::mkfifo((jobs.folder(id) / "failures/rank.6").c_str(), 0600), 0);
  put("failures/rank.1;echo", "1\n");
  put("failures/rank.5", "$(touch x)\n");
  put("failures/rank.8", "1700000000123");  // half-written
  put("failures/rank.-9", "1700000000123\n");
  put("failures/rank.010", "1700000000123\n");
  put("failures/rank.99999999999", "1700000000123\n");
  put("failures/rank.", "1700000000123\n");
  put("failures/agent",
      "x exit 1 2\n3 exit 1 99999999999999999999\n3 exit 1 1700000002\n3 exit 1 1\n../../x exit 1 2\n4 exit");
  const auto workers = read();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers.at(3).end->at, milliseconds(1700000002000)) << "older builds wrote seconds";
}

TEST_F(Workers, LinksAreNotFollowed) {
  put("secret", "1700000000123\nsecret\n");
  fs::create_directories(jobs.folder(id) / "ranks");
  fs::create_directories(jobs.folder(id) / "failures");
  fs::create_symlink("../secret", jobs.folder(id) / "failures/rank.1");
  fs::create_symlink("../secret", jobs.folder(id) / "ranks/2.err");
  put("failures/agent", "2 exit 1 1700000002000\n");
  const auto workers = read();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_THAT(workers.at(2).last_lines, IsEmpty());
}

TEST_F(Workers, LongOutputsAreCut) {
  put("failures/rank.1", "1700000000123\n" + std::string(100'000, 'x') + "\n\nlast");
  put("failures/rank.2", "1700000000123\n");
  const auto workers = read(3);
  EXPECT_THAT(workers.at(1).last_lines, ElementsAre(std::string(2000, 'x'), "", "last"));
  EXPECT_THAT(workers.at(2).last_lines, IsEmpty());
  EXPECT_THAT(read(0).at(1).last_lines, IsEmpty());
}

// The answer is one message of at most 1 MiB.
TEST_F(Workers, TheAnswerIsBounded) {
  std::string text;
  for (int line = 0; line < 100; ++line) {
    text += std::string(300, 'x') + "\n";
  }
  for (int rank = 0; rank < 100; ++rank) {
    put("failures/rank." + std::to_string(rank), "1700000000123\n" + text);
  }
  std::size_t size = 0;
  const auto workers = read(1000);
  EXPECT_EQ(workers.size(), 100U);
  for (const auto& [rank, worker] : workers) {
    for (const std::string& line : worker.last_lines) {
      size += line.size();
    }
  }
  EXPECT_GT(size, 600'000U);
  EXPECT_LT(size, 800'000U);
}

}  // namespace
}  // namespace remote::agent
