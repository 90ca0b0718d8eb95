#include "project/check/burn.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/marked_lines.hpp"

// The messages of burn.py, and the findings.

namespace remote::project {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

BurnAnswer read_lines(const std::string& lines) {
  BurnAnswer answer{4};
  servers::MarkedLines reader(wire::burn_mark, [&](std::string_view json) {
    answer.take(servers::parse_message<wire::BurnMessage>(json));
  });
  reader.add(lines);
  reader.check();
  return answer;
}

TEST(BurnAnswer, IsReadStrictly) {
  const BurnAnswer answer = read_lines(
      "hello\nremote-burn {\"kind\": \"link\", \"from\": 0, \"to\": 1, \"gbit_s\": 2.5}\n"
      "remote-burn {\"kind\": \"lacks\", \"what\": \"nccl\"}\n"
      "remote-burn {\"kind\": \"device\", \"rank\": 0, \"backend\": \"nccl\", \"type\": \"bfloat16\", "
      "\"tflops\": 250.5, \"bus_gbit_s\": 90, \"name\": \"NVIDIA A100-SXM4-80GB\"}\n");
  ASSERT_TRUE(answer.device);
  EXPECT_EQ(answer.device->device, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(answer.device->type, "bfloat16");
  EXPECT_EQ(answer.backend, "nccl");
  EXPECT_EQ(answer.lacks, "nccl");
  EXPECT_DOUBLE_EQ(answer.device->tflops, 250.5);
  EXPECT_DOUBLE_EQ(answer.device->bus_gbit_s, 90);
  EXPECT_DOUBLE_EQ(answer.links.at(0).gbit_s, 2.5);
  EXPECT_EQ(answer.links.at(0).to, 1);
  EXPECT_EQ(read_lines("remote-burn {\"kind\": \"failed\", \"problem\": \"no_torch\"}\n").error,
            "the environment of the servers has no torch");
}

TEST(BurnAnswer, OddMessagesAreRefused) {
  const auto device = [](const std::string& rank, const std::string& backend, const std::string& type,
                         const std::string& tflops, const std::string& name) {
    return R"({"kind":"device","rank":)" + rank + R"(,"backend":")" + backend + R"(","type":")" + type +
           R"(","tflops":)" + tflops + R"(,"bus_gbit_s":1,"name":")" + name + R"("})";
  };
  const std::string link = R"({"kind":"link","from":0,"to":3,"gbit_s":1})";
  const auto is_refused = [](const std::string& json) {
    try {
      read_lines("remote-burn " + json + "\n");
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(is_refused(device("3", "gloo", "float16", "0", "x")));
  EXPECT_FALSE(is_refused(link + "\nremote-burn " + link));
  for (const std::string& json : {device("4", "nccl", "bfloat16", "1", "x"),
                                  device("-1", "nccl", "bfloat16", "1", "x"),
                                  device("0", "mpi", "bfloat16", "1", "x"),
                                  device("0", "nccl", "int8", "1", "x"),
                                  device("0", "nccl", "float16", "-1", "x"),
                                  device("0", "nccl", "float16", "NaN", "x"),
                                  device("0", "nccl", "float16", "1e999", "x"),
                                  device("0", "nccl", "float16", "\"1\"", "x"),
                                  device("0", "nccl", "float16", "1", ""),
                                  device("0", "nccl", "float16", "1", R"(\u001b[2J)"),
                                  device("0", "nccl", "float16", "1", std::string(256, 'x')),
                                  std::string(R"({"kind":"link","from":0,"to":4,"gbit_s":1})"),
                                  std::string(R"({"kind":"link","from":4,"to":0,"gbit_s":1})"),
                                  std::string(R"({"kind":"link","from":0})"),
                                  link + "\nremote-burn " + link + "\nremote-burn " + link,
                                  std::string(R"({"kind":"lacks","what":"torch"})"),
                                  std::string(R"({"kind":"nonsense"})"),
                                  std::string("nonsense"),
                                  std::string(),
                                  std::string(R"({"kind":"failed","problem":"$IFS"})"),
                                  std::string(R"({"kind":"failed","problem":"timeout","more":1})")}) {
    EXPECT_TRUE(is_refused(json)) << json;
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
  EXPECT_EQ(all[0][0].detail,
            "2 devices, the first NVIDIA A100-SXM4-80GB: 250 TFLOP/s in bfloat16, 80 % of the 312 that the "
            "manufacturer specifies; all-reduce over 4 ranks (nccl): 90 Gbit/s bus bandwidth");
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

TEST(BurnFindings, SayWhyTheRanksExchangedDataWithGloo) {
  Burn burn = measured();
  burn.backend = "gloo";
  for (int rank : {2, 3}) {
    burn.devices[static_cast<std::size_t>(rank)].lacks = "cuda";
  }
  judge_burn(burn);
  auto all = burn_findings(burn, {"a", "b"});
  ASSERT_THAT(all[0], SizeIs(1));
  EXPECT_THAT(all[0][0].detail, HasSubstr("all-reduce over 4 ranks (gloo, as there is no CUDA on b): 90"));
  ASSERT_THAT(all[1], SizeIs(2));
  EXPECT_EQ(all[1][1].name, "burn-backend");
  EXPECT_EQ(all[1][1].status, CheckStatus::warn);
  EXPECT_THAT(all[1][1].detail, HasSubstr("torch sees no CUDA here, so all ranks exchanged data with gloo"));

  // If no rank can use NCCL, gloo is expected.
  for (BurnDevice& device : burn.devices) {
    device.lacks = "cuda";
  }
  judge_burn(burn);
  all = burn_findings(burn, {"a", "b"});
  EXPECT_THAT(all[0][0].detail, HasSubstr("(gloo): 90"));
  EXPECT_THAT(all[1], SizeIs(1));
}

Job rank_job(int rank, const char* server) {
  Job job;
  job.key = 10 + rank;
  job.id = *JobId::parse(std::string(31, 'a') + std::to_string(rank));
  job.server = server;
  job.rank = rank;
  return job;
}

TEST(BurnFindings, SayWhatIsLeftOfTheRanks) {
  using Outcome = KillResult::Entry::Outcome;
  const std::vector<Job> ranks = {rank_job(0, "a"), rank_job(1, "b"), rank_job(2, "c"), rank_job(3, "d"),
                                  rank_job(4, "e")};
  KillResult killed;
  killed.entries = {{ranks[0], Outcome::killed, 1, {}, "", {}},
                    {ranks[1], Outcome::survivors, 1, {"pid 4121 (python3, user ada, state D)"}, "", {}},
                    {ranks[3], Outcome::refused, 0, {}, "the job is another user's\x1b[2J", {}},
                    {ranks[4], Outcome::ended, 0, {}, "", {}}};
  killed.errors = {Error("cannot end jobs", "no answer").on("c")};
  CleanResult cleaned;
  cleaned.entries = {{ranks[0], true, ""}, {ranks[4], false, "Read-only file system"}};
  Burn burn = measured();
  burn.left = left_of(ranks, killed, cleaned);
  const auto all = burn_findings(burn, {"a", "b", "c", "d", "e"});
  for (const Finding& finding : all[0]) {
    EXPECT_NE(finding.name, "burn-left");
  }
  EXPECT_EQ(all[1].front().status, CheckStatus::fail);
  EXPECT_EQ(all[1].front().detail,
            "rank 1 (job 11) could not be ended; still there: pid 4121 (python3, user ada, state D)");
  EXPECT_EQ(all[1].front().fix->text, "remote job-kill 11 && remote job-clean 11");
  EXPECT_EQ(all[2].front().detail, "it is unknown whether rank 2 (job 12) has ended: no answer");
  EXPECT_THAT(all[3].front().detail, HasSubstr("rank 3 (job 13) could not be ended: the job is another"));
  EXPECT_THAT(all[3].front().detail, ::testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(all[4].front().status, CheckStatus::warn);
  EXPECT_EQ(all[4].front().detail, "the folder of rank 4 (job 14) stays: Read-only file system");
  EXPECT_EQ(all[4].front().fix->text, "remote job-clean 14");
}

}  // namespace
}  // namespace remote::project
