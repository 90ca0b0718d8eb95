#include "agent/gpus/gpus.hpp"

#include <gmock/gmock.h>

#include "agent/facts/facts.hpp"
#include "agent/gpu_host.hpp"
#include "agent/gpus/ask.hpp"
#include "agent/gpus/memory_holders.hpp"
#include "agent/host/files.hpp"
#include "agent/source_folder.hpp"
#include "agent/waiting.hpp"
#include "rules/usable.hpp"

// Queries a fake nvidia-smi (tests/data/gpus) of several driver versions.

namespace remote::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;
using wire::GpuDetail;

class Gpus : public test::GpuHost {
 protected:
  // Gives the server the GPUs recorded with this driver.
  void use_driver(const std::string& version) {
    fs::copy(data / version, folder / "gpus",
             fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    add_program("nvidia-smi", pretend_nvidia(folder / "gpus"));
    add_program("dmesg", "exit 1\n");
    add_program("journalctl", "exit 0\n");
  }
  void replace(const std::string& name, const std::string& text) { put(folder / "gpus" / name, text); }
  std::vector<std::string> asked() { return read_lines(folder / "asked"); }
  GpuFacts ask(GpuDetail detail = GpuDetail::full) { return read_gpus(host, detail); }

  const fs::path data = fs::path(test::source_folder) / "tests/data/gpus";
};

TEST_F(Gpus, AreNoneWithoutAnyProgram) {
  const GpuFacts facts = ask();
  EXPECT_THAT(facts.gpus, IsEmpty());
  EXPECT_THAT(facts.tools, IsEmpty());
}

// A user waits for the full answer, so its limit is short. Otherwise a driver that is slow to start gets more
// time.
TEST_F(Gpus, LimitHowLongAnAnswerMayTake) {
  EXPECT_EQ(choose_limit(GpuDetail::full), std::chrono::seconds(7));
  EXPECT_EQ(choose_limit(GpuDetail::brief), std::chrono::seconds(10));
  add_program("nvidia-smi", "sleep 1000\n");
  add_program("dmesg", "sleep 1000\n");
  const auto begin = std::chrono::steady_clock::now();
  const auto outputs = ask_nvidia(host, {.detail = GpuDetail::full, .limit = std::chrono::milliseconds(300)});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  ASSERT_TRUE(outputs);
  EXPECT_EQ(outputs->query.code, 124);
  EXPECT_EQ(parse_gpus({.nvidia = *outputs}).tools.at(0).state, GpuToolState::hangs);
}

TEST_F(Gpus, FindAProgramOnThePathOfALoginShell) {
  host.root = folder / "root";
  put(host.system("/dev/nvidiactl"), "");
  put(host.home / ".profile", "echo welcome\necho x >>\"$HOME/asked\"\nPATH=$HOME/site:$PATH\n");
  put_program(host.home / "site/nvidia-smi", pretend_nvidia(data / "470"));
  EXPECT_EQ(ask(GpuDetail::brief).gpus.size(), 1U);
  EXPECT_EQ(ask(GpuDetail::brief).tools.at(0).program, "nvidia-smi");
  EXPECT_EQ(read_lines(host.home / "asked").size(), 1U) << "the shell is asked once";
}

TEST_F(Gpus, FindProgramsInTheirUsualFolders) {
  host.root = folder / "root";
  for (const char* place : {"/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi",
                            "/usr/local/cuda/bin/nvidia-smi"}) {
    put_program(host.system(place), pretend_nvidia(data / "470"));
    EXPECT_EQ(ask(GpuDetail::brief).gpus.size(), 1U) << place;
    put_program(host.system(place), "echo 4121\n");
    EXPECT_THAT(find_memory_holders(host, std::chrono::seconds(10)), ElementsAre(4121)) << place;
    fs::remove(host.system(place));
  }
  for (const char* place : {"/opt/rocm/bin/rocm-smi", "/opt/rocm-6.2.0/bin/rocm-smi"}) {
    put_program(host.system(place), "echo '{\"card0\": {}, \"card1\": {}}'\n");
    const GpuFacts facts = ask(GpuDetail::brief);
    ASSERT_EQ(facts.gpus.size(), 2U) << place;
    EXPECT_EQ(facts.gpus[0].vendor, GpuVendor::amd);
    fs::remove(host.system(place));
  }
}

TEST_F(Gpus, StartALoginShellOnlyIfThereMayBeGpus) {
  host.root = folder / "root";
  put(host.home / ".profile", "echo x >>\"$HOME/asked\"\n");
  put(host.system("/dev/nvme0"), "");
  put(host.system("/proc/bus/pci/devices"), "0000\t80861237\t0\n0008\t1022145c\t0\t10de\n");
  ask(GpuDetail::brief);
  EXPECT_FALSE(fs::exists(host.home / "asked"));
  put(host.system("/proc/bus/pci/devices"), "0000\t80861237\t0\n0100\t10de20b0\tb\n");
  ask(GpuDetail::brief);
  EXPECT_TRUE(fs::exists(host.home / "asked")) << "its device files may be made by the first nvidia-smi";
}

TEST_F(Gpus, StartALoginShellIfTheDevicesAreUnknown) {
  host.root = folder / "root";
  put(host.home / ".profile", "echo x >>\"$HOME/asked\"\n");
  put(host.system("/sys/bus/pci/devices/0000:01:00.0/vendor"), "0x10de\n");
  ask(GpuDetail::brief);
  EXPECT_TRUE(fs::exists(host.home / "asked"));
}

TEST_F(Gpus, DoNotStartALoginShellForAProgramThatIsThere) {
  put(host.home / ".profile", "echo x >>\"$HOME/asked\"\n");
  use_driver("470");
  ask(GpuDetail::brief);
  EXPECT_FALSE(fs::exists(host.home / "asked"));
}

TEST_F(Gpus, HaveTheVariablesThatHideThem) {
  for (const std::string_view name : rules::visibility_variables) {
    host.environment.erase(std::string(name));
  }
  EXPECT_THAT(ask(GpuDetail::brief).visible, IsEmpty());
  host.environment["CUDA_VISIBLE_DEVICES"] = "";
  host.environment["ROCR_VISIBLE_DEVICES"] = "1\n\x1b[2J";
  const auto visible = ask(GpuDetail::brief).visible;
  ASSERT_EQ(visible.size(), 2U);
  EXPECT_EQ(visible[0].variable, "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(visible[0].value, "");
  EXPECT_EQ(visible[1].variable, "ROCR_VISIBLE_DEVICES");
  EXPECT_THAT(visible[1].value, Not(HasSubstr("\x1b")));
}

// As for the facts of a launch, which enters the Python environment.
TEST_F(Gpus, AreCountedAfterThePrologue) {
  put_program(folder / "site/nvidia-smi", pretend_nvidia(data / "470"));
  put_program(folder / "bin/python3", "echo Python 3.9.7\n");
  host.environment["HIP_VISIBLE_DEVICES"] = "0";
  host.environment["ROCR_VISIBLE_DEVICES"] = "0";
  wire::FactsRequest request{.activate =
                                 "export PATH='" + (folder / "site").string() +
                                 "':$PATH CUDA_VISIBLE_DEVICES=\"a 'b' \\$c\"\nunset ROCR_VISIBLE_DEVICES"};
  request.python = false;
  request.gpus = GpuDetail::brief;
  const GpuFacts gpus = collect_facts(host, request, "").facts.gpus;
  EXPECT_EQ(gpus.gpus.size(), 1U) << "the prologue extends PATH";
  ASSERT_EQ(gpus.visible.size(), 2U);
  EXPECT_EQ(gpus.visible[0].variable, "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(gpus.visible[0].value, "a 'b' $c");
  EXPECT_TRUE(gpus.visible[0].by_prologue);
  EXPECT_EQ(gpus.visible[1].variable, "HIP_VISIBLE_DEVICES");
  EXPECT_FALSE(gpus.visible[1].by_prologue);
}

// As for the samples of `top`.
TEST_F(Gpus, EnterThePrologueOnceForSeveralSamples) {
  put_program(folder / "site/nvidia-smi", pretend_nvidia(data / "470"));
  const fs::path entered = folder / "entered";
  wire::FactsRequest request{.activate = "echo x >>'" + entered.string() + "'; [ -e '" +
                                         (folder / "ready").string() + "' ] || exit; export PATH='" +
                                         (folder / "site").string() + "':$PATH"};
  request.gpus = GpuDetail::brief;
  EXPECT_THAT(collect_facts(host, request, "").facts.gpus.gpus, IsEmpty()) << "it failed";
  put(folder / "ready", "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(collect_facts(host, request, "").facts.gpus.gpus.size(), 1U);
  }
  EXPECT_EQ(fs::file_size(entered), 4U) << "again only after a failure";
}

TEST_F(Gpus, AskAnOldDriverByTheOldNames) {
  use_driver("470");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 1U) << facts.tools.at(0).text;
  const Gpu& gpu = facts.gpus[0];
  EXPECT_EQ(gpu.name, "Tesla T4");
  EXPECT_THAT(gpu.clock_limits, ElementsAre(ClockLimit::idle)) << "clocks_throttle_reasons.active";
  EXPECT_EQ(gpu.persistence, false);
  EXPECT_EQ(gpu.remap_pending, false);
  EXPECT_FALSE(gpu.mig);
  EXPECT_EQ(facts.tools.at(0).driver_version, "470.161.03");
  EXPECT_EQ(facts.tools.at(0).library_version, "11.4");
}

TEST_F(Gpus, DoWithoutFieldsThatTheDriverDoesNotKnow) {
  use_driver("470");
  replace("gpus.csv", "index, uuid, name, memory.total\n0, GPU-1, Tesla K80, 11441\n");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 1U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].name, "Tesla K80");
  EXPECT_EQ(facts.gpus[0].memory_total, 11441ULL << 20U);
  EXPECT_FALSE(facts.gpus[0].temperature);
}

TEST_F(Gpus, StopAskingADriverThatKnowsNoField) {
  add_program("nvidia-smi",
              "echo \"$1\" >>'" + (folder / "asked").string() +
                  "'\nx=${1#*=}\necho \"Field \\\"${x%%,*}\\\" is not a valid field to query.\"\n"
                  "exit 2\n");
  EXPECT_EQ(ask(GpuDetail::brief).tools.at(0).state, GpuToolState::failed);
  EXPECT_LE(asked().size(), 25U);
}

TEST_F(Gpus, HaveLinksAndRowsToRemap) {
  use_driver("535");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 2U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].utilisation, 97);
  EXPECT_EQ(facts.gpus[0].remap_pending, false);
  EXPECT_EQ(facts.gpus[1].remap_pending, true);
  EXPECT_EQ(facts.gpus[1].mig, false);
  ASSERT_TRUE(facts.topology);
  EXPECT_THAT(facts.topology->devices, ElementsAre("GPU0", "GPU1", "mlx5_0"));
  EXPECT_EQ(facts.topology->links.at(0).at(1), "NV12");
}

TEST_F(Gpus, HaveFaults) {
  use_driver("550");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 4U) << facts.tools.at(0).text;
  EXPECT_THAT(
      facts.gpus[0].clock_limits,
      ElementsAre(ClockLimit::hardware_slowdown, ClockLimit::software_thermal, ClockLimit::hardware_thermal));
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected, 3U);
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected_lifetime, 11U);
  EXPECT_EQ(facts.gpus[1].remap_failed, true);
  EXPECT_EQ(facts.gpus[2].mig, true);
  EXPECT_EQ(facts.gpus[2].processes.size(), 1U) << "of an instance";
  EXPECT_THAT(facts.gpus[3].unreadable, Not(IsEmpty()));
  EXPECT_EQ(facts.gpus[0].processes.at(0).name, "python, train.py");
}

TEST_F(Gpus, AreKeptNextToALostOne) {
  use_driver("570");
  const GpuFacts facts = ask();
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::lost_device);
  ASSERT_EQ(facts.gpus.size(), 2U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].temperature, 45);
  EXPECT_FALSE(facts.gpus[0].ecc);
  EXPECT_EQ(facts.gpus[0].processes.size(), 1U);
  EXPECT_TRUE(facts.gpus[1].lost);
  EXPECT_EQ(facts.gpus[1].pci_address, "0000:41:00.0");
}

// Recorded on a real GPU.
TEST_F(Gpus, OfARealH100AreUnderstood) {
  use_driver("580");
  add_program("dmesg", "sed 1d '" + (data / "580/dmesg.txt").string() + "'\n");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.tools.size(), 1U);
  EXPECT_EQ(facts.tools[0].state, GpuToolState::answered);
  EXPECT_EQ(facts.tools[0].text, "");
  EXPECT_EQ(facts.tools[0].driver_version, "580.159.04");
  EXPECT_EQ(facts.tools[0].library_version, "13.0");
  ASSERT_EQ(facts.gpus.size(), 1U);
  const Gpu& gpu = facts.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.pci_address, "00000000:00:06.0");
  EXPECT_EQ(gpu.memory_total, 81559ULL << 20U);
  EXPECT_EQ(gpu.power, 74.49);
  EXPECT_EQ(gpu.clock, 345);
  EXPECT_EQ(gpu.clock_max, 1980);
  EXPECT_THAT(gpu.clock_limits, ElementsAre(ClockLimit::idle));
  EXPECT_EQ(gpu.ecc, true);
  EXPECT_EQ(gpu.ecc_uncorrected, 0U);
  EXPECT_EQ(gpu.persistence, true);
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(gpu.remap_pending, false);
  EXPECT_EQ(gpu.remap_failed, false);
  EXPECT_THAT(gpu.unreadable, IsEmpty());
  ASSERT_EQ(gpu.processes.size(), 2U);
  EXPECT_EQ(gpu.processes[0].memory, 21090ULL << 20U);
  EXPECT_EQ(gpu.processes[1].name, "/opt/torch/.venv/bin/python");
  ASSERT_TRUE(facts.topology);
  EXPECT_THAT(facts.topology->devices, ElementsAre("GPU0"));
  ASSERT_TRUE(facts.xids);
  ASSERT_EQ(facts.xids->size(), 3U);
  EXPECT_EQ(facts.xids->at(0).code, 43);
  EXPECT_EQ(facts.xids->at(2).code, 31);
  EXPECT_EQ(facts.xids->at(2).pci_address, "0000:00:06");
  EXPECT_THAT(facts.xids->at(2).text, HasSubstr("MMU Fault: ENGINE GRAPHICS"));
}

TEST_F(Gpus, MayBeLostToAContainer) {
  add_program("nvidia-smi", "echo 'Failed to initialize NVML: Unknown Error'\nexit 255\n");
  EXPECT_EQ(ask(GpuDetail::brief).tools.at(0).state, GpuToolState::no_access);
}

TEST_F(Gpus, MayAllBeLost) {
  add_program("nvidia-smi", "echo 'some text of a lost GPU'\nexit 15\n");
  EXPECT_EQ(ask(GpuDetail::brief).tools.at(0).state, GpuToolState::lost_device)
      << "not a server without GPUs";
}

TEST_F(Gpus, SayWhyThereIsNoAnswer) {
  use_driver("550");
  replace("fails", "9\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  const GpuFacts facts = ask();
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::no_driver);
  EXPECT_THAT(facts.tools.at(0).text, HasSubstr("couldn't communicate"));
  EXPECT_THAT(facts.gpus, IsEmpty());
}

// A request that is repeated every second costs two calls of nvidia-smi, plus one for each old name.
TEST_F(Gpus, AskLittleWhenAskedInBrief) {
  use_driver("550");
  const GpuFacts facts = ask(GpuDetail::brief);
  EXPECT_EQ(facts.gpus.size(), 4U);
  EXPECT_FALSE(facts.topology);
  EXPECT_FALSE(facts.xids);
  EXPECT_THAT(asked(), UnorderedElementsAre(HasSubstr("--query-gpu="), HasSubstr("--query-compute-apps=")));
}

TEST_F(Gpus, HaveTheDriversErrorsFromDmesg) {
  use_driver("535");
  add_program("dmesg",
              "i=0\nwhile [ $i -lt 60 ]; do echo \"[1.5] NVRM: Xid (PCI:0000:3b:00): $i, x\"; i=$((i + 1)); "
              "echo; done\necho other\n");
  const GpuFacts facts = ask();
  ASSERT_TRUE(facts.xids);
  ASSERT_EQ(facts.xids->size(), 50U) << "the last of them";
  EXPECT_EQ(facts.xids->front().code, 10);
  EXPECT_EQ(facts.xids->back().code, 59);
}

TEST_F(Gpus, HaveTheDriversErrorsFromTheJournal) {
  use_driver("535");
  add_program("dmesg", "echo 'NVRM: Xid (PCI:0000:3b:00): 1, x'\nexit 1\n");
  EXPECT_FALSE(ask().xids) << "this user may not read the journal";
  add_program("journalctl", "echo 'Linux version 6.1'\n");
  EXPECT_THAT(ask().xids.value(), IsEmpty());
  add_program("journalctl", "echo 'NVRM: Xid (PCI:0000:3b:00): 79, x'\n");
  EXPECT_EQ(ask().xids.value().at(0).code, 79);
}

TEST_F(Gpus, AreAskedOfEveryVendor) {
  use_driver("535");
  add_program("rocm-smi", "echo \"$*\" >>'" + (folder / "asked").string() +
                              "'\necho '{\"card0\": {\"GPU use (%)\": \"7\"}}'\n");
  add_program("xpu-smi",
              "case $1 in discovery) echo '{\"device_list\": [{\"device_id\": 0}]}' ;; *) printf "
              "'Timestamp, DeviceId, GPU Power (W)\\n06:14, 0, 9.5\\n' ;; esac\n");
  GpuFacts facts = ask(GpuDetail::brief);
  ASSERT_EQ(facts.gpus.size(), 4U);
  EXPECT_EQ(facts.gpus[2].utilisation, 7);
  EXPECT_EQ(facts.gpus[3].power, 9.5);
  EXPECT_THAT(asked(), testing::Contains(HasSubstr("--showmeminfo vram")));
  add_program("amd-smi", "[ \"$2\" = --json ] && echo '[{\"gpu\": 0}, {\"gpu\": 1}]'\n");
  facts = ask(GpuDetail::brief);
  EXPECT_EQ(facts.tools.at(1).program, "amd-smi") << "it is newer";
  EXPECT_EQ(facts.gpus.size(), 5U);
}

}  // namespace
}  // namespace remote::agent
