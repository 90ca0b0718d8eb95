#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project/check/judge.hpp"

namespace remote::project {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t gpu_gib = 1024UL * 1024 * 1024;

config::Server server_with(const std::string& more) {
  return config::parse("servers:\n  gpu1: {hostname: h1" + more + "}\n", "/home/me/proj").servers.front();
}

ServerFacts healthy_gpus() {
  ServerFacts facts;
  facts.user = "ada";
  facts.gpus.tools.push_back(
      {GpuVendor::nvidia, "nvidia-smi", GpuToolState::answered, "", "550.54.15", "12.4"});
  for (int i = 0; i < 4; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.name = "NVIDIA A100-SXM4-80GB";
    gpu.memory_total = 80 * gpu_gib;
    gpu.memory_used = 0;
    gpu.temperature = 35;
    gpu.clock_limits = {ClockLimit::idle, ClockLimit::power_cap};
    gpu.ecc_uncorrected = 0;
    gpu.persistence = false;
    gpu.remap_pending = gpu.remap_failed = false;
    gpu.compute_mode = "Default";
    facts.gpus.gpus.push_back(gpu);
  }
  facts.gpus.xids.emplace();
  facts.gpus.xids->push_back({"0000:3b:00", 13, "a program's own fault"});
  return facts;
}

std::vector<Finding> judged_gpus(const ServerFacts& facts, const std::string& more = "") {
  std::vector<Finding> findings;
  judge_gpus(server_with(more), facts, findings);
  return findings;
}

TEST(JudgeGpus, HealthyOnesGetNoWarning) {
  for (const Finding& finding : judged_gpus(healthy_gpus(), ", gpus: 4")) {
    EXPECT_EQ(finding.status, CheckStatus::ok) << finding.name << ": " << finding.detail;
  }
  EXPECT_EQ(judged_gpus(healthy_gpus())[1].detail, "4 × NVIDIA A100-SXM4-80GB, 80 GiB");
}

TEST(JudgeGpus, ADriverWithoutGpusIsAWarning) {
  ServerFacts facts;
  GpuTool& tool = facts.gpus.tools.emplace_back();
  tool.program = "nvidia-smi";
  tool.state = GpuToolState::no_devices;
  EXPECT_EQ(judged_gpus(facts)[0].status, CheckStatus::skip);
  tool.text = "No devices were found";
  const Finding finding = judged_gpus(facts)[0];
  EXPECT_EQ(finding.status, CheckStatus::warn);
  EXPECT_EQ(finding.detail, "nvidia-smi finds no GPU (nvidia-smi says: No devices were found)");
  EXPECT_THAT(finding.fix->text, HasSubstr("dmesg"));
  facts.gpus.tools.push_back({GpuVendor::amd, "rocm-smi", GpuToolState::answered, "", "6.2", ""});
  EXPECT_EQ(judged_gpus(facts)[0].status, CheckStatus::ok) << "the GPUs are of another vendor";
}

TEST(JudgeGpus, AServerWithoutThemIsWell) {
  const auto findings = judged_gpus({});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, CheckStatus::skip);
}

struct GpuCase {
  const char* what;
  std::function<void(ServerFacts&)> spoil;
  const char* name;
  CheckStatus status;
  const char* detail;
  const char* fix;
  std::string yaml = {};
};

TEST(JudgeGpus, FindsWhatIsWrongAndNamesWhatMendsIt) {
  constexpr CheckStatus warn = CheckStatus::warn;
  constexpr CheckStatus fail = CheckStatus::fail;
  const auto hold = [](ServerFacts& f, const GpuProcess& process) { f.gpus.gpus[1].processes = {process}; };
  const auto state = [](GpuToolState how) {
    return [how](ServerFacts& f) {
      f.gpus.tools.front().state = how;
      f.gpus.tools.front().text = "it says\x1b[2J no";
    };
  };
  const std::vector<GpuCase> cases = {
      {"fewer", [](ServerFacts&) {}, "gpus", fail, "8 expected, 4 there", "nvidia-smi -L", ", gpus: 8"},
      {"one that is listed", [](ServerFacts&) {}, "gpus", fail, "lists GPU 7, but there are 4", "nvidia-smi",
       ", gpus: [2, 7]"},
      {"more", [](ServerFacts&) {}, "gpus", warn, "2 expected, 4 × NVIDIA", "gpus: 4", ", gpus: 2"},
      {"hidden by the login",
       [](ServerFacts& f) {
         f.gpus.visible = {{"CUDA_VISIBLE_DEVICES", "1"}};
       },
       "gpus", fail,
       "4 expected, 4 × NVIDIA A100-SXM4-80GB, 80 GiB; ranks see 1: CUDA_VISIBLE_DEVICES is set by the login",
       "env | grep CUDA_VISIBLE_DEVICES", ", gpus: 4"},
      {"held by somebody else",
       [&](ServerFacts& f) {
         hold(f, {4711, "python", 30 * gpu_gib, "bob", false, "", std::chrono::minutes(1)});
       },
       "gpu-busy", warn, "GPU 1: python (pid 4711, bob, 30 GiB)",
       "ask bob, or name other GPUs for server gpu1 in configs.yaml, such as gpus: [0]"},
      {"held by oneself",
       [&](ServerFacts& f) {
         hold(f, {4711, "python", 30 * gpu_gib, "ada", true, "", std::chrono::minutes(1)});
       },
       "gpu-busy", warn, "GPU 1: python (pid 4711, ada, 30 GiB)", "kill 4711"},
      {"lost", [](ServerFacts& f) { f.gpus.gpus[2].lost = true; }, "gpu-health", fail, "GPU 2 is lost",
       "reboot"},
      {"bad memory", [](ServerFacts& f) { f.gpus.gpus[2].remap_pending = true; }, "gpu-health", warn,
       "GPU 2 has bad memory", "nvidia-smi --gpu-reset -i 2"},
      {"no spare rows", [](ServerFacts& f) { f.gpus.gpus[2].remap_failed = true; }, "gpu-health", fail,
       "no spare rows", "nvidia-smi"},
      {"ECC", [](ServerFacts& f) { f.gpus.gpus[0].ecc_uncorrected = 3; }, "gpu-health", warn,
       "3 uncorrectable", "--gpu-reset -i 0"},
      {"Xid",
       [](ServerFacts& f) {
         f.gpus.xids = {{{"0000:3b:00", 79, "x"}, {"0000:3b:00", 79, "x"}}};
       },
       "gpu-health", warn, "Xid 79 in the kernel's log, 2 times", "dmesg"},
      {"prohibited", [](ServerFacts& f) { f.gpus.gpus[3].compute_mode = "Prohibited"; }, "gpu-health", fail,
       "accepts no work", "nvidia-smi -i 3 -c DEFAULT"},
      {"hot", [](ServerFacts& f) { f.gpus.gpus[3].clock_limits = {ClockLimit::hardware_thermal}; },
       "gpu-clocks", warn, "GPU 3: hw_thermal_slowdown at 35 °C", "nvidia-smi -q -d"},
      {"no driver", state(GpuToolState::no_driver), "gpu-driver", fail, "it says\\x1b[2J no",
       "modprobe nvidia"},
      {"another library", state(GpuToolState::version_mismatch), "gpu-driver", fail, "not reloaded",
       "reboot"},
      {"fallen off", state(GpuToolState::lost_device), "gpu-driver", fail, "fallen off the bus", "reboot"},
      {"no rights", state(GpuToolState::no_permission), "gpu-driver", fail, "may not use",
       "usermod -aG video,render ada"},
      {"in a container that lost them", state(GpuToolState::no_access), "gpu-driver", fail,
       "the container has lost its access", "restart the container"},
      {"hangs", state(GpuToolState::hangs), "gpu-driver", fail,
       "within 7 seconds: the driver hangs, or is loaded for each call",
       "timeout 60 nvidia-smi -pm 1 || reboot"},
      {"another answer", state(GpuToolState::failed), "gpu-driver", warn, "an answer that is not documented",
       "nvidia-smi"},
  };
  for (const GpuCase& one : cases) {
    SCOPED_TRACE(one.what);
    ServerFacts facts = healthy_gpus();
    one.spoil(facts);
    const auto findings = judged_gpus(facts, one.yaml);
    const auto finding = std::ranges::find(findings, one.name, &Finding::name);
    ASSERT_NE(finding, findings.end());
    EXPECT_EQ(finding->status, one.status) << finding->detail;
    EXPECT_THAT(finding->detail, HasSubstr(one.detail));
    ASSERT_TRUE(finding->fix);
    EXPECT_THAT(finding->fix->text, HasSubstr(one.fix));
    EXPECT_EQ(
        std::ranges::count_if(findings, [](const Finding& each) { return each.status != CheckStatus::ok; }),
        1);
  }
}

TEST(JudgeGpus, TheFixNamesTheProgramOfTheVendor) {
  ServerFacts facts;
  facts.gpus.tools.push_back({GpuVendor::amd, "rocm-smi", GpuToolState::answered, "", "6.2", ""});
  facts.gpus.gpus.resize(2);
  for (int i = 0; i < 2; ++i) {
    facts.gpus.gpus[i].vendor = GpuVendor::amd;
    facts.gpus.gpus[i].index = i;
  }
  const auto findings = judged_gpus(facts, ", gpus: 4");
  const auto finding = std::ranges::find(findings, "gpus", &Finding::name);
  ASSERT_NE(finding, findings.end());
  EXPECT_EQ(finding->status, CheckStatus::fail);
  EXPECT_EQ(finding->detail, "4 expected, 2 there");
  ASSERT_TRUE(finding->fix);
  EXPECT_THAT(finding->fix->text, testing::StartsWith("rocm-smi; lspci"));
}

TEST(JudgeGpus, OwnJobsAndGpusThatAreNotMeantAreNoTrouble) {
  ServerFacts facts = healthy_gpus();
  facts.gpus.gpus[0].processes = {
      {1, "python", 30 * gpu_gib, "ada", true, "0123456789abcdef0123456789abcdef", std::chrono::minutes(1)}};
  facts.gpus.gpus[1].processes = {{2, "python", 30 * gpu_gib, "bob", false, "", std::chrono::minutes(1)}};
  facts.gpus.gpus[1].lost = true;
  facts.gpus.gpus[2].processes = {{3, "Xorg", 4 << 20, "root", false, "", std::chrono::minutes(1)}};
  for (const Finding& finding : judged_gpus(facts, ", gpus: [0, 2]")) {
    EXPECT_EQ(finding.status, CheckStatus::ok) << finding.name << ": " << finding.detail;
  }
}

TEST(JudgeGpus, TheOddModelIsNamedAndACountThatIsConfiguredIsNot) {
  std::vector<Compared> all = {{"gpu1", healthy_gpus()}, {"gpu2", healthy_gpus()}, {"gpu3", healthy_gpus()}};
  all[1].facts.gpus.gpus.pop_back();
  const auto words = [&] {
    const auto findings = judge_same(all)[1];
    const auto found = std::ranges::find(findings, "same-gpus", &Finding::name);
    return found == findings.end() || found->status == CheckStatus::ok ? "" : found->detail;
  };
  EXPECT_EQ(
      words(),
      "GPUs 3 × NVIDIA A100-SXM4-80GB, 80 GiB on gpu2, 4 × NVIDIA A100-SXM4-80GB, 80 GiB on the 2 others");
  all[0].expected_gpus = all[2].expected_gpus = 4;
  all[1].expected_gpus = 3;
  EXPECT_EQ(words(), "");
  for (Gpu& gpu : all[1].facts.gpus.gpus) {
    gpu.name = "NVIDIA V100";
  }
  EXPECT_EQ(words(), "GPUs NVIDIA V100, 80 GiB on gpu2, NVIDIA A100-SXM4-80GB, 80 GiB on the 2 others");
}

}  // namespace
}  // namespace remote::project
