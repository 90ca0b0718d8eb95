#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/gpus/gpus.hpp"
#include "base/strings.hpp"
#include "support/noise.hpp"
#include "wire/cbor.hpp"

// Parses the output of the vendors' programs. The texts follow their documentation.

namespace remote::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> fields = split(
    "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,"
    "power.limit,clocks.sm,clocks.mem,clocks_event_reasons.active,name",
    ',');
const std::string row =
    "0, GPU-1-a, 00000000:07:00.0, 81920, 40536, 97, 61, 389.21, 400.00, 1350, 1593, 0x0000000000000004, "
    "A100, 80GB";

NvidiaOutputs nvidia_outputs(const std::string& text, int code = 0) {
  return {.fields = fields, .query = to_output(text, code)};
}
GpuFacts parse_nvidia(const std::string& text, int code = 0) {
  return parse_gpus({.nvidia = nvidia_outputs(text, code)});
}
GpuFacts parse_rocm(const std::string& text, int code = 0) {
  return parse_gpus({.amd = AmdOutputs{.rocm = to_output(text, code)}});
}

TEST(GpuOutputs, ReadsOneOfNvidia) {
  const GpuFacts facts = parse_nvidia(row);
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
  EXPECT_FALSE(gpu.ecc) << "it was not asked for";
  EXPECT_EQ(facts.tools.at(0).program, "nvidia-smi");
}

TEST(GpuOutputs, KeepNoValueFromAnError) {
  const Gpu gpu =
      parse_nvidia(
          "0, GPU-1, 00000000:07:00.0, 81920, [N/A], [Not Supported], ERR!, [Unknown Error], 400, "
          "1350, 1593, [Insufficient Permissions], X")
          .gpus.at(0);
  EXPECT_FALSE(gpu.memory_used);
  EXPECT_FALSE(gpu.utilisation);
  EXPECT_THAT(gpu.unreadable, ElementsAre("temperature.gpu", "power.draw", "clocks_event_reasons.active"));
  EXPECT_FALSE(gpu.lost);
  EXPECT_TRUE(parse_nvidia("0, GPU-1, [GPU is lost], 81920, [GPU is lost], 0, 0, 0, 0, 0, 0, 0x0, X")
                  .gpus.at(0)
                  .lost);
}

TEST(GpuOutputs, KnowWhatStopsNvidiaSmi) {
  const auto state = [](const std::string& text, int code) {
    return parse_nvidia(text, code).tools.at(0).state;
  };
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
  EXPECT_EQ(state("", 137), GpuToolState::hangs);
  EXPECT_EQ(state("", 0), GpuToolState::no_devices);
  EXPECT_EQ(state("what is this", 1), GpuToolState::failed);
  EXPECT_EQ(parse_nvidia("what is this", 1).tools.at(0).text, "what is this");
  EXPECT_THAT(parse_nvidia("No devices were found", 6).gpus, IsEmpty());
}

TEST(GpuOutputs, MakesAMessageOneLine) {
  EXPECT_EQ(parse_nvidia(
                "\nFailed to initialize NVML: Driver/library version mismatch\r\n\nNVML\x1b[1m 550.\nx", 18)
                .tools.at(0)
                .text,
            "Failed to initialize NVML: Driver/library version mismatch; NVML\\x1b[1m 550. x");
  EXPECT_EQ(parse_nvidia(std::string(5000, 'a'), 1).tools.at(0).text.size(), 1000U);
}

TEST(GpuOutputs, KeepTheOthersNextToALostOne) {
  const GpuFacts facts =
      parse_nvidia(row +
                       "\nUnable to determine the device handle for GPU 0000:0F:00.0: GPU is lost.  "
                       "Reboot the system to recover this GPU",
                   15);
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::lost_device);
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_FALSE(facts.gpus[0].lost);
  EXPECT_TRUE(facts.gpus[1].lost);
  EXPECT_EQ(facts.gpus[1].pci_address, "0000:0F:00.0");
}

// An undocumented answer marks the program as `failed`; none of the answer is used.
TEST(GpuOutputs, BelieveNothingOdd) {
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
    const GpuFacts facts = parse_nvidia(odd);
    EXPECT_THAT(facts.gpus, IsEmpty()) << odd;
    EXPECT_EQ(facts.tools.at(0).state, GpuToolState::failed) << odd;
    EXPECT_THAT(facts.tools.at(0).text, HasSubstr("not understood")) << odd;
  }
}

TEST(GpuOutputs, FitIntoTheMessage) {
  NvidiaOutputs outputs;
  outputs.fields = {"index", "ecc.errors.uncorrected.volatile.total", "name"};
  outputs.query = to_output("0, 18446744073709551615, A\xff\x07" + std::string(500, 'b'));
  outputs.kernel_log =
      to_output("NVRM: Xid (PCI:0000:3b:00): 2000000000, x\nNVRM: Xid (PCI:0000:3b:00): 79, " +
                std::string(5000, '\x01'));
  const std::string cards = R"j({"card0": {"VRAM Total Memory (B)": "1e15"}, "card2000000000": {}})j";
  const std::string devices =
      R"j({"device_list": [{"device_id": 0, "memory_physical_size_byte": 18446744073709551615}]})j";
  const GpuFacts facts = parse_gpus({.nvidia = outputs,
                                     .amd = AmdOutputs{.rocm = to_output(cards)},
                                     .intel = IntelOutputs{.list = to_output(devices)}});
  ASSERT_EQ(facts.gpus.size(), 3U);
  EXPECT_FALSE(facts.gpus[0].ecc_uncorrected);
  EXPECT_THAT(facts.gpus[0].unreadable, ElementsAre("ecc.errors.uncorrected.volatile.total"));
  EXPECT_THAT(facts.gpus[0].name, HasSubstr("A\\xff\\x07b"));
  EXPECT_FALSE(facts.gpus[2].memory_total);
  EXPECT_EQ(facts.xids.value().size(), 1U);
  EXPECT_NO_THROW(wire::decode<GpuFacts>(wire::encode(facts)));
}

TEST(GpuOutputs, FindTheGpuOfAProcess) {
  NvidiaOutputs outputs = nvidia_outputs(row);
  outputs.apps = to_output(
      "GPU-1-a, 41, 1024, /opt/my, python\nGPU-1-a, 42, [N/A], [Not Found]\nGPU-other, 43, 1, x\n"
      "MIG-7, 44, 1, y\n\nNo running processes found\nthe rest of, a name\nGPU-1-a, -1, 1, z");
  const auto processes = parse_gpus({.nvidia = outputs}).gpus.at(0).processes;
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].pid, 41);
  EXPECT_EQ(processes[0].name, "/opt/my, python");
  EXPECT_EQ(processes[0].memory, 1024ULL << 20U);
  EXPECT_EQ(processes[1].name, "");
  EXPECT_FALSE(processes[1].memory);
  EXPECT_EQ(processes[2].pid, 44) << "of an instance: there is only one GPU";
}

TEST(GpuOutputs, DecodesTheReasonsOfSlowClocks) {
  EXPECT_THAT(decode_clock_limits(0), IsEmpty());
  EXPECT_THAT(decode_clock_limits(0x1), ElementsAre(ClockLimit::idle));
  EXPECT_THAT(
      decode_clock_limits(0x68),
      ElementsAre(ClockLimit::hardware_slowdown, ClockLimit::software_thermal, ClockLimit::hardware_thermal));
  EXPECT_THAT(decode_clock_limits(0x10000), ElementsAre(ClockLimit::other));
}

TEST(GpuOutputs, ReadsErrorsOfTheDriver) {
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

TEST(GpuOutputs, ReadsTheTopology) {
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
  EXPECT_THROW(read_topology({"\tGPU0\tCPU Affinity", "GPU0\t\x1b]0;x\x07\t0"}), BadAnswer);
}

TEST(GpuOutputs, ReadsTheXml) {
  NvidiaOutputs outputs = nvidia_outputs(row);
  const std::string xml =
      "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n\t<driver_version>550.54.15</driver_version>\n"
      "\t<cuda_version>12.4</cuda_version>\n\t<gpu id=\"1\">\n\t\t<uuid>GPU-1-a</uuid>\n"
      "\t\t<uuid>of an instance</uuid>\n\t\t<remapped_row_pending>Yes</remapped_row_pending>\n";
  outputs.xml = to_output(xml + "\t\t<remapped_row_failure>No</remapped_row_failure>\n\t</gpu>\n");
  GpuFacts facts = parse_gpus({.nvidia = outputs});
  EXPECT_EQ(facts.gpus.at(0).remap_pending, true);
  EXPECT_EQ(facts.gpus[0].remap_failed, false);
  EXPECT_EQ(facts.tools.at(0).driver_version, "550.54.15");
  EXPECT_EQ(facts.tools[0].library_version, "12.4");

  outputs.xml = to_output(xml + "<remapped_row_fail", 124);
  EXPECT_EQ(parse_gpus({.nvidia = outputs}).gpus.size(), 1U) << "it was too slow";
  for (const char* odd : {"<uuid>GPU-1", "<uuid>a<b></uuid>", "<cuda_version>\x1b[2J</cuda_version>"}) {
    outputs.xml = to_output(odd);
    EXPECT_EQ(parse_gpus({.nvidia = outputs}).tools.at(0).state, GpuToolState::failed) << odd;
  }
}

TEST(GpuOutputs, ReadsRocmSmi) {
  const GpuFacts facts = parse_rocm(R"j(WARNING: AMD GPU device(s) is/are in a low-power state.
{"card1": {"Card Series": "AMD Instinct MI250X", "GPU use (%)": "7", "VRAM Total Memory (B)": "68702699520",
"VRAM Total Used Memory (B)": "11005952", "Temperature (Sensor edge) (C)": "35.0", "PCI Bus": "0000:C1:00.0",
"Average Graphics Package Power (W)": "91.0", "Max Graphics Package Power (W)": "560.0", "Unique ID": "0x1f"},
"card0": {"Card Series": "AMD Instinct MI250X", "GPU use (%)": "N/A"}, "system": {
  "Driver version" : "6.2.4"
}
})j");
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(facts.gpus[0].index, 0);
  EXPECT_FALSE(facts.gpus[0].utilisation);
  EXPECT_EQ(facts.gpus[1].vendor, GpuVendor::amd);
  EXPECT_EQ(facts.gpus[1].name, "AMD Instinct MI250X");
  EXPECT_EQ(facts.gpus[1].memory_total, 68702699520U);
  EXPECT_EQ(facts.gpus[1].temperature, 35.0);
  EXPECT_EQ(facts.gpus[1].power_limit, 560.0);
  EXPECT_EQ(facts.tools.at(0).driver_version, "6.2.4");
  EXPECT_EQ(facts.tools[0].program, "rocm-smi");
  EXPECT_EQ(parse_rocm("Segmentation fault").tools.at(0).state, GpuToolState::failed);
  EXPECT_EQ(parse_rocm("[1]").tools.at(0).state, GpuToolState::failed);
}

TEST(GpuOutputs, ReadsAmdSmi) {
  const std::string fixed =
      R"j([{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xAB"}, "bus": {"bdf": "0000:05:00.0"},
"driver": {"name": "amdgpu", "version": "6.8.5"}, "limit": {"max_power": {"value": 750, "unit": "W"}}}])j";
  const std::string metric =
      R"j({"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 12, "unit": "%"}}, "power": {"socket_power": {"value": 141, "unit": "W"}},
"temperature": {"edge": "N/A", "hotspot": {"value": 44, "unit": "C"}},
"mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}}]})j";
  const GpuFacts facts =
      parse_gpus({.amd = AmdOutputs{.fixed = to_output(fixed), .metric = to_output(metric)}});
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(facts.gpus[0].power_limit, 750);
  EXPECT_EQ(facts.gpus[0].power, 141);
  EXPECT_EQ(facts.gpus[0].temperature, 44) << "the hotspot if there is no edge";
  EXPECT_EQ(facts.gpus[0].memory_total, 196592ULL << 20U);
  EXPECT_EQ(facts.gpus[0].utilisation, 12);
  EXPECT_EQ(facts.tools.at(0).program, "amd-smi");
  EXPECT_EQ(parse_gpus({.amd = AmdOutputs{.fixed = to_output(R"j([{"gpu": "x"}])j")}}).tools.at(0).state,
            GpuToolState::failed);
}

TEST(GpuOutputs, ReadsXpuSmi) {
  const GpuFacts facts = parse_gpus(
      {.intel = IntelOutputs{
           .list = to_output(
               R"j({"device_list": [{"device_id": 0, "device_name": "Intel(R) Data Center GPU Max 1550",
"pci_bdf_address": "0000:4d:00.0", "uuid": "00000000-0000-0000-0000-0000002f0bd5", "memory_physical_size_byte": "68719476736"}]})j"),
           .dump = to_output(
               "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Frequency (MHz), GPU Core "
               "Temperature (Celsius Degree), GPU Memory Used (MiB)\n"
               "06:14:46.000,    0, 99.50, 350.25, 1600, N/A, 1024.00")}});
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].vendor, GpuVendor::intel);
  EXPECT_EQ(facts.gpus[0].memory_total, 68719476736U);
  EXPECT_EQ(facts.gpus[0].memory_used, 1024ULL << 20U);
  EXPECT_EQ(facts.gpus[0].utilisation, 99.5);
  EXPECT_FALSE(facts.gpus[0].temperature);
  EXPECT_EQ(
      parse_gpus({.intel = IntelOutputs{.list = to_output(R"j({"error": "no device"})j")}}).tools.at(0).state,
      GpuToolState::failed);
}

// One program's bad answer does not affect the other's GPUs.
TEST(GpuOutputs, KeepTheVendorsApart) {
  const GpuFacts facts =
      parse_gpus({.nvidia = nvidia_outputs(row),
                  .amd = AmdOutputs{.rocm = to_output("Traceback (most recent call last):", 1)},
                  .intel = IntelOutputs{.list = to_output("what is this")}});
  ASSERT_EQ(facts.tools.size(), 3U);
  EXPECT_EQ(facts.tools[0].state, GpuToolState::answered);
  EXPECT_EQ(facts.tools[1].state, GpuToolState::failed);
  EXPECT_EQ(facts.tools[2].state, GpuToolState::failed);
  EXPECT_EQ(facts.gpus.size(), 1U);
}

TEST(GpuOutputs, SurviveNoise) {
  std::mt19937 random(7);
  const auto noise = [&](const std::string& text) {
    return to_output(random() % 3 == 0 ? remote::test::damaged(text, random) : text);
  };
  for (int i = 0; i < 3000; ++i) {
    GpuOutputs outputs;
    outputs.nvidia = NvidiaOutputs{
        .fields = fields,
        .query = noise(row),
        .apps = noise("GPU-1-a, 41, 1024, python"),
        .xml = noise("<uuid>GPU-1-a</uuid>\n<cuda_version>12.4</cuda_version>"),
        .topology = noise("\tGPU0\tCPU Affinity\nGPU0\t X \t0-3"),
        .kernel_log = noise("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.")};
    outputs.amd = AmdOutputs{.rocm = noise("{\"card0\": {\"GPU use (%)\": \"7\"\n}\n}")};
    outputs.intel = IntelOutputs{.list = noise(R"({"device_list": [{"device_id": 0}]})"),
                                 .dump = noise("Timestamp, DeviceId, GPU Power (W)\n06:14, 0, 9.5")};
    const GpuFacts facts = parse_gpus(outputs);
    for (const Gpu& gpu : facts.gpus) {
      EXPECT_TRUE(!gpu.utilisation || (*gpu.utilisation >= 0 && *gpu.utilisation <= 100));
      EXPECT_EQ(gpu.uuid.find('\x1b'), std::string::npos);
    }
    EXPECT_NO_THROW(wire::decode<GpuFacts>(wire::encode(facts)));
  }
}

}  // namespace
}  // namespace remote::agent
