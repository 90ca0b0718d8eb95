#include "base/failure_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "support/paths.hpp"

// Uses the stderr of torch 2.11 on an H100.

namespace remote {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> recorded(const std::string& name) {
  return split(read_file(std::string(test::source_folder) + "/tests/data/stderr/" + name + ".txt"), '\n');
}

TEST(FailureLines, OfADeviceSideAssert) {
  const auto lines = find_failure_lines(recorded("assert"), 10);
  ASSERT_THAT(lines, SizeIs(10));
  EXPECT_THAT(lines[0], HasSubstr("Assertion `-sizes[i] <= index && index < sizes[i]"));
  EXPECT_EQ(lines[1], "[rank1]: Traceback (most recent call last):");
  EXPECT_EQ(lines[3], "[rank1]:     print(y.cpu())");
  EXPECT_EQ(lines[5], "[rank1]: torch.AcceleratorError: CUDA error: device-side assert triggered");
  EXPECT_THAT(lines, Each(Not(HasSubstr("terminate called"))));
}

TEST(FailureLines, OfACollectiveThatTimedOut) {
  const auto lines = find_failure_lines(recorded("watchdog"), 10);
  EXPECT_THAT(lines, Contains(HasSubstr("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, "
                                        "OpType=ALLREDUCE")));
  EXPECT_THAT(lines, Each(AllOf(Not(HasSubstr("frame #")), Not(HasSubstr("destroy_process_group")))));
}

TEST(FailureLines, EndWithTheErrorAndNotWithAWarning) {
  EXPECT_THAT(find_failure_lines(recorded("duplicate"), 1),
              ElementsAre("[rank0]: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"));
}

TEST(FailureLines, AreTheLastOnesOfAnyOtherProgram) {
  EXPECT_THAT(find_failure_lines({"a", "", "b", "c"}, 2), ElementsAre("b", "c"));
  EXPECT_THAT(find_failure_lines({"frame #1: x"}, 2), ElementsAre("frame #1: x"));
  EXPECT_THAT(find_failure_lines({}, 2), ElementsAre());
  EXPECT_THAT(find_failure_lines({"a"}, 0), ElementsAre());
}

TEST(FailureLines, KeepAnAbortThatHasAnotherReason) {
  const std::vector<std::string> lines = {"Traceback (most recent call last):", "ValueError: handled",
                                          "terminate called after throwing an instance of 'std::bad_alloc'",
                                          "  what():  std::bad_alloc"};
  EXPECT_EQ(find_failure_lines(lines, 10), lines);
}

TEST(FailureLines, LinesOfTorchsLog) {
  EXPECT_TRUE(is_torch_log("[rank0]:[W1126 16:05:40.816896340 ProcessGroupNCCL.cpp:1575] Warning"));
  EXPECT_TRUE(is_torch_log("[E1126 16:05:40.816896340 socket.cpp:1] x"));
  EXPECT_TRUE(is_torch_log("[W ProcessGroupNCCL.cpp:1575] Warning"));
  EXPECT_FALSE(is_torch_log("[Epoch 3] loss 0.5"));
  EXPECT_FALSE(is_torch_log("[W 3] loss 0.5"));
  EXPECT_FALSE(is_torch_log("[1/3]"));
  EXPECT_FALSE(is_torch_log(""));
  EXPECT_TRUE(is_python_warning("/usr/lib/x y.py:50: UserWarning: max_iter=100 is small"));
  EXPECT_TRUE(is_python_warning("<frozen importlib._bootstrap>:241: DeprecationWarning: x"));
  EXPECT_TRUE(is_python_warning("[rank1]: a.py:1: torch.jit.TracerWarning: x"));
  EXPECT_TRUE(is_python_warning("  warnings.warn(f\"lr={lr}\")"));
  EXPECT_FALSE(is_python_warning("step 3: Warning: loss 0.5"));
  EXPECT_FALSE(is_python_warning("a.py:12: loss 0.5"));
  EXPECT_FALSE(is_python_warning("Warning: loss 0.5"));
  EXPECT_FALSE(is_python_warning(""));
  EXPECT_EQ(without_rank_label("[rank12]: x"), " x");
  EXPECT_EQ(without_rank_label("[rank]: x"), "[rank]: x");
}

}  // namespace
}  // namespace remote
