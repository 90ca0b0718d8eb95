#include "agent/launch/output_sizes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "agent/host_folder.hpp"
#include "agent/job/job_files.hpp"

namespace remote::agent {
namespace {

TEST(OutputSizes, IgnoreWhatTorchLogsOfADump) {
  const test::HostFolder folder;
  const Path file = folder.path() / "job.err";
  OutputSizes sizes;
  const auto measure_after = [&](const std::string& text) {
    write_job_file(file, text, O_APPEND);
    return sizes.measure(file).value();
  };
  const std::string dump =
      "[rank0]:[E1126 16:53:35.184850601 ProcessGroupNCCL.cpp:1628] [PG ID 0] ProcessGroupNCCL preparing to "
      "dump "
      "debug info. Include: 1\n";
  EXPECT_FALSE(sizes.measure(file));
  const std::uint64_t first = measure_after("begun\n");
  EXPECT_EQ(measure_after(dump), first);
  EXPECT_EQ(measure_after(""), first);
  EXPECT_EQ(measure_after(dump + "step\n" + dump), first + 5);
  EXPECT_EQ(measure_after(std::string(100000, 'x')), first + 5 + 100000);
}

}  // namespace
}  // namespace remote::agent
