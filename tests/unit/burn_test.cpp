#include "project/check/burn.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/action.hpp"

// What burn.py answers, and what it means.

namespace remote::project {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

BurnAnswer read_lines(const std::string& lines) {
  BurnAnswer answer{4};
  servers::AnswerReader reader = servers::reader_into(answer);
  reader.add(lines);
  reader.finish();
  return answer;
}

TEST(BurnAnswer, IsReadStrictly) {
  const BurnAnswer answer = read_lines(
      "hello\n@remote1 burn link 0 1 2500000000\n"
      "@remote1 burn device 0 nccl bfloat16 250500000 90000000000 NVIDIA_A100-SXM4-80GB\n");
  ASSERT_TRUE(answer.device);
  EXPECT_EQ(answer.device->device, "NVIDIA A100-SXM4-80GB");
  EXPECT_DOUBLE_EQ(answer.device->tflops, 250.5);
  EXPECT_DOUBLE_EQ(answer.device->bus_gbit_s, 90);
  EXPECT_DOUBLE_EQ(answer.links.at(0).gbit_s, 2.5);
  for (const char* line :
       {"device 4 nccl bfloat16 1 1 x", "device 0 mpi bfloat16 1 1 x", "device 0 nccl int8 1 1 x",
        "device 0 nccl float16 -1 1 x", "link 0 4 1", "link 0", "nonsense", "error $(id)"}) {
    EXPECT_THROW(read_lines(std::string("@remote1 burn ") + line + "\n"), Error) << line;
  }
}

TEST(BurnPromises, AreFoundByTheDriversName) {
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA A100-SXM4-80GB", "bfloat16"), 312);
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA A10", "float32"), 31.2);
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA L4", "bfloat16"), 121);
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA L40S", "bfloat16"), 362);
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA H100 PCIe", "bfloat16"), 756);
  EXPECT_DOUBLE_EQ(promised_tflops("NVIDIA H100 80GB HBM3", "bfloat16"), 989);
  EXPECT_DOUBLE_EQ(promised_tflops("Tesla T4", "float16"), 65);
  EXPECT_DOUBLE_EQ(promised_tflops("AMD EPYC 7763 64-Core Processor", "float32"), 0);
}

// Four ranks on two servers.
Burn measured() {
  Burn burn;
  for (int rank = 0; rank < 4; ++rank) {
    burn.devices.push_back({.rank = rank,
                            .server = rank < 2 ? "a" : "b",
                            .device = "NVIDIA A100-SXM4-80GB",
                            .type = "bfloat16",
                            .tflops = 250,
                            .bus_gbit_s = 90});
  }
  burn.links = {{0, 1, 1000}, {1, 2, 90}, {2, 3, 1000}};
  burn.backend = "nccl";
  return burn;
}

TEST(BurnFindings, AHealthyClusterIsFine) {
  Burn burn = measured();
  judge_burn(burn);
  const auto all = burn_findings(burn, {"a", "b"});
  ASSERT_THAT(all[0], SizeIs(1));
  EXPECT_EQ(all[0][0].status, CheckStatus::ok);
  EXPECT_EQ(
      all[0][0].detail,
      "2 devices, the first NVIDIA A100-SXM4-80GB: 250 TFLOP/s in bfloat16, 80 % of the 312 that the maker "
      "promises; all-reduce over 4 ranks (nccl): 90 Gbit/s bus bandwidth");
  EXPECT_THAT(all[1], SizeIs(1));
}

TEST(BurnFindings, NameTheSlowDeviceAndTheSlowLink) {
  Burn burn = measured();
  burn.devices[3].tflops = 120;
  burn.links[2].gbit_s = 300;
  judge_burn(burn);
  const auto all = burn_findings(burn, {"a", "b"});
  EXPECT_THAT(all[0], SizeIs(1));
  ASSERT_THAT(all[1], SizeIs(3));
  EXPECT_EQ(all[1][0].name, "burn-device");
  EXPECT_THAT(all[1][0].detail, HasSubstr("rank 3 (NVIDIA A100-SXM4-80GB): 120 TFLOP/s"));
  EXPECT_EQ(all[1][2].name, "burn-link");
  EXPECT_THAT(all[1][2].detail, HasSubstr("ranks 2 and 3 (on b) exchange only 300 Gbit/s"));
}

}  // namespace
}  // namespace remote::project
