#include "agent/job/last_words.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/host_folder.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n";
const std::string trace = "Traceback (most recent call last):\n  File x\n";

TEST(LastWords, BlameAPeer) {
  for (const std::string text : {"Connection reset by peer",
                                 "RuntimeError: Connection closed by peer [10.0.0.2]:1",
                                 "Connection refused",
                                 "Connection was likely closed",
                                 "Broken pipe",
                                 "gloo connectFullMesh failed with",
                                 "Socket Timeout",
                                 "Socket closed",
                                 "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
                                 "torch.distributed.DistStoreError: wait timeout",
                                 "Timed out waiting 1800000ms for recv operation to complete",
                                 "Timed out waiting ms for send operation",
                                 "remote process exited or there was a network error",
                                 "NCCL communicator was aborted on rank 1.",
                                 "Some NCCL operations have failed or timed out.",
                                 "[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)",
                                 "remote: ended by TERM, as rank 3 failed",
                                 "remote: ended by KILL, as rank 3 failed",
                                 "remote: exited with 14, as MPI does",
                                 "remote: mpirun has ended without a daemon",
                                 "ORTE has lost communication with a remote daemon.",
                                 "assert (!closed) failed"}) {
    EXPECT_TRUE(blames_peer(text)) << text;
    EXPECT_TRUE(blames_peer("x\n" + text + "\n")) << text;
    EXPECT_TRUE(blames_peer(trace + text)) << text;
  }
  for (const std::string text :
       {"", "ValueError: a bad batch", "x remote: mpirun has ended", "remote: ended by INT, as ",
        "connection reset", "Timed out waiting 12s for recv operation",
        "Timed out waiting 1ms for a send operation", "assert closed failed", "DistXError"}) {
    EXPECT_FALSE(blames_peer(text)) << text;
  }
}

TEST(LastWords, OnlyTheLastTracebackAndAttemptCount) {
  EXPECT_TRUE(blames_peer(trace + "RuntimeError: [tcp/pair.cc:598] Connection closed by peer\n"));
  EXPECT_FALSE(blames_peer(trace + "ValueError: a bad batch\n"));
  EXPECT_FALSE(blames_peer("Connection reset by peer, trying again\n" + trace + "ValueError: a bad batch\n"));
  EXPECT_FALSE(blames_peer("Connection reset by peer\n" + anew));
  EXPECT_TRUE(blames_peer(anew + "Connection reset by peer"));
  EXPECT_FALSE(blames_peer("Broken pipe\n" + std::string(20000, 'x'))) << "only the end is read";
}

TEST(LastWords, TheLastAttemptFollowsTheLastDivider) {
  EXPECT_EQ(find_last_attempt("1\n2\n"), "1\n2\n");
  EXPECT_EQ(find_last_attempt("1\n" + anew + "2\n"), "2\n");
  EXPECT_EQ(find_last_attempt("1\n" + anew + "2\n" + anew + "3"), "3");
  EXPECT_EQ(find_last_attempt("1\n" + anew), "");
  EXPECT_EQ(find_last_attempt("remote: the ranks begin anew ("), "");
  EXPECT_EQ(find_last_attempt("1\nremote: the workers begin anew (restart 1) at x\n"), "");
  EXPECT_EQ(find_last_attempt("1\nremote: the point begins again (retry 1 of 1) after exit 1\n2"), "2");
  EXPECT_EQ(find_last_attempt("x " + anew + "2"), "x " + anew + "2") << "not at the beginning of a line";
  EXPECT_EQ(find_last_attempt(anew + "1\nx " + anew + "2"), "1\nx " + anew + "2");
}

TEST(LastWords, FindsTheLastLines) {
  EXPECT_THAT(find_last_lines("", 2), IsEmpty());
  EXPECT_THAT(find_last_lines("a", 0), IsEmpty());
  EXPECT_THAT(find_last_lines("a\nb\nc\n", 2), ElementsAre("b", "c"));
  EXPECT_THAT(find_last_lines("a\nb", 5), ElementsAre("a", "b"));
  EXPECT_THAT(find_last_lines("a\n\n", 2), ElementsAre("a", ""));
  EXPECT_THAT(find_last_lines("\n", 2), ElementsAre(""));
}

class LastLine : public ::testing::Test {
 protected:
  // Writes a file with a modification time this many seconds ago.
  void put(const std::string& name, const std::string& text, int age = 0) const {
    test::HostFolder::put(host.path() / name, text);
    fs::last_write_time(host.path() / name, fs::file_time_type::clock::now() - std::chrono::seconds(age));
  }
  std::string find() const { return read_last_line(host.path()).value_or("-"); }
  test::HostFolder host;
};

TEST_F(LastLine, IsTheLastOneThatIsNotBlank) {
  EXPECT_EQ(find(), "-");
  put("job.out", "");
  EXPECT_EQ(find(), "-");
  put("job.out", "one\ntwo\n\n  \t \n");
  EXPECT_EQ(find(), "two");
  put("job.out", "\n \r\n");
  EXPECT_EQ(find(), "-");
}

TEST_F(LastLine, IsOfTheOutputThatWasWrittenLast) {
  put("job.out", "out\n", 100);
  put("job.err", "10%\r20%\r");
  EXPECT_EQ(find(), "20%") << "the last state of a progress bar";
  put("job.err", "");
  EXPECT_EQ(find(), "out");
  put("job.err", "err\n", 200);
  EXPECT_EQ(find(), "out");
  fs::remove(host.path() / "job.out");
  EXPECT_EQ(find(), "err");
}

TEST_F(LastLine, HasNoControlCharacters) {
  put("job.out", std::string("@remote1 end\nx\001y\0z \033[2J", 23));
  EXPECT_EQ(find(), "x\001y z \033[2J");
  put("job.out", std::string(2000, 'x') + "y");
  EXPECT_EQ(find(), std::string(399, 'x') + "y");
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "é";
  }
  put("job.out", text + "x");  // the cut is in the middle of a character
  EXPECT_EQ(find(), text.substr(0, 398) + "x");
}

TEST_F(LastLine, IsReadFromRegularFilesAlone) {
  fs::create_directory(host.path() / "job.err");
  ASSERT_EQ(::mkfifo((host.path() / "job.out").c_str(), 0600), 0);
  EXPECT_EQ(find(), "-");
  EXPECT_FALSE(read_end_of_file(host.path() / "job.out", 10));
  EXPECT_FALSE(read_end_of_file(host.path() / "job.err", 10));
  EXPECT_FALSE(read_end_of_file("/dev/zero", 10));
  put("file", "abc");
  fs::create_symlink("file", host.path() / "link");
  EXPECT_EQ(read_end_of_file(host.path() / "link", 2), "bc");
  EXPECT_FALSE(read_end_of_file(host.path() / "link", 2, Links::refuse));
}

}  // namespace
}  // namespace remote::agent
