#include "servers/gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "cli/show/gpus.hpp"
#include "servers/gpu_vendors.hpp"
#include "support/noise.hpp"

// How the answers of the vendors' programs are read. The texts are written from their documentation.

namespace remote::servers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string fields =
    "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,"
    "clocks.sm,"
    "clocks.mem,clocks_event_reasons.active,name";
const std::string row =
    "0, GPU-1-a, 00000000:07:00.0, 81920, 40536, 97, 61, 389.21, 400.00, 1350, 1593, 0x0000000000000004, "
    "A100, 80GB";

std::string answered(const std::string& name, const std::string& text, int code = 0) {
  std::string answer;
  for (const std::string& line : split(text, '\n')) {
    answer += "@remote1 gpu-out " + name + " |" + line + "\n";
  }
  return answer + "@remote1 gpu-end " + name + " " + std::to_string(code) + "\n";
}

GpuFacts gpus_in(const std::string& text) {
  return read_answer<GpuAnswer>(text + "@remote1 end\n").facts();
}

GpuFacts nvidia(const std::string& text, int code = 0, const std::string& more = "") {
  return gpus_in(answered("nvidia-fields", fields) + answered("nvidia-query", text, code) + more);
}

TEST(Gpus, AreInUseAlsoWhereNoProcessIsSeen) {
  Gpu gpu{.memory_total = 80ULL << 30U, .memory_used = 600ULL << 20U, .utilisation = 0.0};
  EXPECT_EQ(cli::in_use(gpu), false) << "a driver takes as much";
  gpu.utilisation = 100;  // percent
  EXPECT_EQ(cli::in_use(gpu), true);
  gpu.utilisation.reset();
  gpu.memory_used = 31ULL << 30U;
  EXPECT_EQ(cli::in_use(gpu), true);
  GpuFacts facts;
  facts.gpus = {gpu, gpu};
  EXPECT_EQ(cli::in_short(facts), "2 of 2, 62.0 GiB of 160 GiB");
}

// As of an integrated one, or one that is broken.
TEST(Gpus, OfWhichNothingIsKnownAreNotCalledFree) {
  GpuFacts facts;
  facts.gpus = {Gpu{}};
  EXPECT_EQ(cli::in_use(facts.gpus[0]), std::nullopt);
  EXPECT_EQ(cli::in_short(facts), "0 of 1");
  facts.gpus[0].processes.emplace_back().pid = 900;
  EXPECT_EQ(cli::in_short(facts), "1 of 1");
}

TEST(Gpus, ReadsOneOfNvidia) {
  const GpuFacts facts = nvidia(row);
  ASSERT_EQ(facts.gpus.size(), 1U);
  const Gpu& gpu = facts.gpus[0];
  EXPECT_EQ(gpu.name, "A100, 80GB") << "the name is the last field, and may have a comma";
  EXPECT_EQ(gpu.uuid, "GPU-1-a");
  EXPECT_EQ(gpu.memory_total, 81920ULL << 20U);
  EXPECT_EQ(gpu.memory_used, 40536ULL << 20U);
  EXPECT_EQ(gpu.utilisation, 97);
  EXPECT_EQ(gpu.power, 389.21);
  EXPECT_EQ(gpu.clock, 1350);
  EXPECT_THAT(gpu.clock_limits, ElementsAre(ClockLimit::power_cap));
  EXPECT_FALSE(facts.xids) << "the log was not asked for";
  EXPECT_FALSE(gpu.ecc) << "nothing was said about it";
}

TEST(Gpus, TellNothingFromAnError) {
  const Gpu gpu =
      nvidia(
          "0, GPU-1, 00000000:07:00.0, 81920, [N/A], [Not Supported], ERR!, [Unknown Error], 400, "
          "1350, 1593, [Insufficient Permissions], X")
          .gpus.at(0);
  EXPECT_FALSE(gpu.memory_used);
  EXPECT_FALSE(gpu.utilisation);
  EXPECT_THAT(gpu.unreadable, ElementsAre("temperature.gpu", "power.draw", "clocks_event_reasons.active"));
  EXPECT_FALSE(gpu.lost);
  EXPECT_TRUE(
      nvidia("0, GPU-1, [GPU is lost], 81920, [GPU is lost], 0, 0, 0, 0, 0, 0, 0x0, X").gpus.at(0).lost);
}

TEST(Gpus, KnowWhatStopsNvidiaSmi) {
  const auto state = [](const std::string& text, int code) { return nvidia(text, code).tools.at(0).state; };
  EXPECT_EQ(state("No devices were found", 6), GpuToolState::no_devices);
  EXPECT_EQ(
      state(
          "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
          "latest NVIDIA driver is installed and running.",
          9),
      GpuToolState::no_driver);
  EXPECT_EQ(
      state("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54", 18),
      GpuToolState::version_mismatch);
  EXPECT_EQ(state("Failed to initialize NVML: Insufficient Permissions", 4), GpuToolState::no_permission);
  EXPECT_EQ(state("", 124), GpuToolState::hangs);
  EXPECT_EQ(state("what is this", 1), GpuToolState::failed);
  EXPECT_EQ(nvidia("what is this", 1).tools.at(0).text, "what is this");
  EXPECT_THAT(nvidia("No devices were found", 6).gpus, IsEmpty());
}

TEST(Gpus, KeepTheOthersBesideALostOne) {
  const GpuFacts facts =
      nvidia(row +
                 "\nUnable to determine the device handle for GPU 0000:0F:00.0: GPU is lost.  "
                 "Reboot the system to recover this GPU",
             15);
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::lost_device);
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_FALSE(facts.gpus[0].lost);
  EXPECT_TRUE(facts.gpus[1].lost);
  EXPECT_EQ(facts.gpus[1].pci_address, "0000:0F:00.0");
}

// An answer that is not as documented makes the program `failed`; nothing of it is believed.
TEST(Gpus, BelieveNothingOdd) {
  for (const char* odd : {
           "0, GPU-1, 07:00.0, -5, 1, 1, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0, 81920, many, 1, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0, 81920, 1, 101, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0, 81920, 1, nan, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0, 1e30, 1, 1, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0, 81920, 1, 1, 1, 1, 1, 1, 1, 4, X",
           "0, GPU-1, 07:00.0, 81920, 1, 1, 1, 1, 1, 1, 1, 0xzz, X",
           "0, GPU-1\x1b[2J, 07:00.0, 81920, 1, 1, 1, 1, 1, 1, 1, 0x0, X",
           "zero, GPU-1, 07:00.0, 81920, 1, 1, 1, 1, 1, 1, 1, 0x0, X",
           "0, GPU-1, 07:00.0",
       }) {
    const GpuFacts facts = nvidia(odd);
    EXPECT_THAT(facts.gpus, IsEmpty()) << odd;
    EXPECT_EQ(facts.tools.at(0).state, GpuToolState::failed) << odd;
    EXPECT_THAT(facts.tools.at(0).text, HasSubstr("not understood")) << odd;
  }
}

TEST(Gpus, RefuseLinesThatOurScriptDoesNotWrite) {
  for (const char* odd : {
           "@remote1 gpu-out nvidia-query no bar\n",
           "@remote1 gpu-out something |x\n",
           "@remote1 gpu-end nvidia-query 256\n",
           "@remote1 gpu-end nvidia-query 0\n@remote1 gpu-end nvidia-query 0\n",
           "@remote1 gpu-pid 0 ada 1 5 - python\n",
           "@remote1 gpu-pid 5 ada 2 5 - python\n",
           "@remote1 gpu-pid 5 a;b 1 5 - python\n",
           "@remote1 gpu-pid 5 ada 1 5 nojob python\n",
           "@remote1 gpu-what 1\n",
       }) {
    EXPECT_THROW(gpus_in(odd), Error) << odd;
  }
  EXPECT_THROW(gpus_in("@remote1 gpu-out nvidia-query |x\n"), Error) << "its end is missing";
}

TEST(Gpus, KnowWhoseAProcessIs) {
  const std::string job(32, 'a');
  const GpuFacts facts = nvidia(row, 0,
                                answered("nvidia-apps",
                                         "GPU-1-a, 41, 1024, /opt/my, python\nGPU-1-a, 42, [N/A], [Not "
                                         "Found]\nGPU-other, 43, 1, x") +
                                    "@remote1 gpu-pid 41 ada 1 3600 " + job +
                                    " python3\n@remote1 gpu-pid 42 bob 0 - - train me\n");
  const auto& processes = facts.gpus.at(0).processes;
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].name, "/opt/my, python");
  EXPECT_EQ(processes[0].memory, 1024ULL << 20U);
  EXPECT_EQ(processes[0].job, job);
  EXPECT_TRUE(processes[0].own);
  EXPECT_EQ(processes[0].age, std::chrono::hours(1));
  EXPECT_EQ(processes[1].name, "train me") << "what the server itself knows";
  EXPECT_EQ(processes[1].user, "bob");
  EXPECT_FALSE(processes[1].own);
  EXPECT_FALSE(processes[1].memory);
}

TEST(Gpus, NameTheReasonsOfSlowClocks) {
  EXPECT_THAT(clock_limits(0), IsEmpty());
  EXPECT_THAT(clock_limits(0x1), ElementsAre(ClockLimit::idle));
  EXPECT_THAT(clock_limits(0x68), ElementsAre(ClockLimit::hardware_slowdown, ClockLimit::software_thermal,
                                              ClockLimit::hardware_thermal));
  EXPECT_THAT(clock_limits(0x10000), ElementsAre(ClockLimit::other));
  EXPECT_FALSE(is_fault(ClockLimit::idle));
  EXPECT_FALSE(is_fault(ClockLimit::power_cap));
  EXPECT_TRUE(is_fault(ClockLimit::hardware_thermal));
  EXPECT_EQ(name_of(ClockLimit::hardware_power_brake), "hw_power_brake_slowdown");
}

TEST(Gpus, ReadErrorsOfTheDriver) {
  const std::vector<XidError> errors =
      read_xids({"[  12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
                 "NVRM: Xid (0000:03:00): 13, Graphics Exception", "NVRM: Xid (PCI:0000:3b:00): many",
                 "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"});
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].pci_address, "0000:3b:00");
  EXPECT_EQ(errors[0].code, 79);
  EXPECT_EQ(errors[0].text, "pid=1234, GPU has fallen off the bus.");
  EXPECT_EQ(errors[1].code, 13);
}

TEST(Gpus, ReadTheTopology) {
  const auto topology = read_topology({"\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\033[0m",
                                       "GPU0\t X \tNV12\tPXB\t0-31\t0", "GPU1\tNV12\t X \tSYS\t32-63\t1",
                                       "NIC0\tPXB\tSYS\t X \t\t", "", "Legend:", "  X    = Self",
                                       "NIC Legend:", "  NIC0: mlx5_0"});
  ASSERT_TRUE(topology);
  EXPECT_THAT(topology->devices, ElementsAre("GPU0", "GPU1", "mlx5_0"));
  EXPECT_THAT(topology->links.at(0), ElementsAre("X", "NV12", "PXB"));
  EXPECT_FALSE(read_topology({"Failed to initialize NVML"}));
  EXPECT_FALSE(read_topology({"\tGPU0\tGPU1\tCPU Affinity", "GPU0\t X \tNV1\t0"})) << "a row is missing";
  EXPECT_FALSE(read_topology({"\tGPU0\tGPU1\tCPU Affinity", "GPU0\t X \tNV1\t0", "", "Legend:"}));
  EXPECT_THROW(read_topology({"\tGPU0\tCPU Affinity", "GPU0\t\x1b]0;x\x07\t0"}), Error);
}

TEST(Gpus, ReadRocmSmi) {
  const GpuFacts facts = gpus_in(answered("rocm", R"j(WARNING: AMD GPU device(s) is/are in a low-power state.
{"card1": {"Card Series": "AMD Instinct MI250X", "GPU use (%)": "7", "VRAM Total Memory (B)": "68702699520",
"VRAM Total Used Memory (B)": "11005952", "Temperature (Sensor edge) (C)": "35.0", "PCI Bus": "0000:C1:00.0",
"Average Graphics Package Power (W)": "91.0", "Max Graphics Package Power (W)": "560.0", "Unique ID": "0x1f"},
"card0": {"Card Series": "AMD Instinct MI250X", "GPU use (%)": "N/A"}, "system": {
  "Driver version" : "6.2.4"
}
})j"));
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(facts.gpus[0].index, 0);
  EXPECT_FALSE(facts.gpus[0].utilisation);
  EXPECT_EQ(facts.gpus[1].vendor, GpuVendor::amd);
  EXPECT_EQ(facts.gpus[1].name, "AMD Instinct MI250X");
  EXPECT_EQ(facts.gpus[1].memory_total, 68702699520U);
  EXPECT_EQ(facts.gpus[1].temperature, 35.0);
  EXPECT_EQ(facts.gpus[1].power_limit, 560.0);
  EXPECT_EQ(facts.tools.at(0).driver_version, "6.2.4");
  EXPECT_EQ(gpus_in(answered("rocm", "Segmentation fault")).tools.at(0).state, GpuToolState::failed);
  EXPECT_EQ(gpus_in(answered("rocm", "[1]")).tools.at(0).state, GpuToolState::failed);
}

TEST(Gpus, ReadAmdSmi) {
  const std::string fixed =
      R"j([{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xAB"}, "bus": {"bdf": "0000:05:00.0"},
"driver": {"name": "amdgpu", "version": "6.8.5"}, "limit": {"max_power": {"value": 750, "unit": "W"}}}])j";
  const std::string metric =
      R"j({"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 12, "unit": "%"}}, "power": {"socket_power": {"value": 141, "unit": "W"}},
"temperature": {"edge": "N/A", "hotspot": {"value": 44, "unit": "C"}},
"mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}}]})j";
  const GpuFacts facts = gpus_in(answered("amd-static", fixed) + answered("amd-metric", metric));
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(facts.gpus[0].power_limit, 750);
  EXPECT_EQ(facts.gpus[0].power, 141);
  EXPECT_EQ(facts.gpus[0].temperature, 44) << "the hotspot where there is no edge";
  EXPECT_EQ(facts.gpus[0].memory_total, 196592ULL << 20U);
  EXPECT_EQ(facts.gpus[0].utilisation, 12);
  EXPECT_EQ(gpus_in(answered("amd-static", R"j([{"gpu": "x"}])j")).tools.at(0).state, GpuToolState::failed);
}

TEST(Gpus, ReadXpuSmi) {
  const GpuFacts facts = gpus_in(
      answered("intel-list",
               R"j({"device_list": [{"device_id": 0, "device_name": "Intel(R) Data Center GPU Max 1550",
"pci_bdf_address": "0000:4d:00.0", "uuid": "00000000-0000-0000-0000-0000002f0bd5", "memory_physical_size_byte": "68719476736"}]})j") +
      answered(
          "intel-dump",
          "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Frequency (MHz), GPU Core "
          "Temperature "
          "(Celsius Degree), GPU Memory Used (MiB)\n06:14:46.000,    0, 99.50, 350.25, 1600, N/A, 1024.00"));
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].vendor, GpuVendor::intel);
  EXPECT_EQ(facts.gpus[0].memory_total, 68719476736U);
  EXPECT_EQ(facts.gpus[0].memory_used, 1024ULL << 20U);
  EXPECT_EQ(facts.gpus[0].utilisation, 99.5);
  EXPECT_FALSE(facts.gpus[0].temperature);
  EXPECT_EQ(gpus_in(answered("intel-list", R"j({"error": "no device"})j")).tools.at(0).state,
            GpuToolState::failed);
}

// One program's bad answer takes nothing from the other's GPUs.
TEST(Gpus, KeepTheVendorsApart) {
  const GpuFacts facts = gpus_in(answered("nvidia-fields", fields) + answered("nvidia-query", row) +
                                 answered("rocm", "Traceback (most recent call last):", 1));
  ASSERT_EQ(facts.tools.size(), 2U);
  EXPECT_EQ(facts.tools[0].state, GpuToolState::answered);
  EXPECT_EQ(facts.tools[1].state, GpuToolState::failed);
  EXPECT_EQ(facts.gpus.size(), 1U);
}

TEST(Gpus, SurviveNoise) {
  std::mt19937 random(7);
  const std::string good = answered("nvidia-fields", fields) + answered("nvidia-query", row) +
                           answered("nvidia-apps", "GPU-1-a, 41, 1024, python") +
                           answered("nvidia-xml", "<uuid>GPU-1-a</uuid>\n<cuda_version>12.4</cuda_version>") +
                           answered("nvidia-topo", "\tGPU0\tCPU Affinity\nGPU0\t X \t0-3") +
                           answered("rocm", R"j({"card0": {"GPU use (%)": "7"
}
})j");
  for (int i = 0; i < 3000; ++i) {
    try {
      for (const Gpu& gpu : gpus_in(test::damaged(good, random)).gpus) {
        EXPECT_TRUE(!gpu.utilisation || (*gpu.utilisation >= 0 && *gpu.utilisation <= 100));
        EXPECT_EQ(gpu.uuid.find('\x1b'), std::string::npos);
      }
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace remote::servers
