#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What a server tells of its GPUs. An absent value means that the vendor's program does not give it for this
// GPU ("[N/A]", "[Not Supported]") or that this version of the program does not know it; it never means zero.
// Text comes from the server as it is: show it through something like visible_line().
//
// Sources: the manual of nvidia-smi(1) and NVML's nvml.h; the JSON of `amd-smi` and `rocm-smi`; the manual of
// xpu-smi. The AMD and Intel sides were written from documentation, and never ran on such hardware.

namespace remote {

enum class GpuVendor { nvidia, amd, intel };

// Why a GPU's clocks are lower than they could be: the bits of nvidia-smi's clocks_event_reasons.active,
// which drivers before 535 call clocks_throttle_reasons.active.
enum class ClockLimit {
  idle,                  // gpu_idle: nothing to do
  application_setting,   // applications_clocks_setting: somebody has set them
  power_cap,             // sw_power_cap: the power limit is reached, which is normal under full load
  hardware_slowdown,     // hw_slowdown: by half or more, for heat or power
  sync_boost,            // sync_boost: it waits for the other GPUs of its group
  software_thermal,      // sw_thermal_slowdown: hotter than it should be
  hardware_thermal,      // hw_thermal_slowdown: too hot
  hardware_power_brake,  // hw_power_brake_slowdown: the server's power supply asks for it
  display_setting,       // display_clocks_setting
  other                  // a bit that this version does not know
};

// "hw_thermal_slowdown": the name that nvidia-smi has for it; "other".
std::string name_of(ClockLimit limit);
// Whether it is worth a warning: a slowdown for heat or by the hardware. Idle, a setting and the power cap
// are not.
bool is_fault(ClockLimit limit);

// A process that has memory of a GPU.
struct GpuProcess {
  int pid = 0;       // as the server counts, outside of containers
  std::string name;  // what the vendor's program calls it, else its /proc/PID/comm; may be ""
  std::optional<std::uint64_t> memory{};  // bytes of this GPU
  std::string user{};                     // its owner's name, or number where there is no name; "": not seen
  bool own = false;                       // the login's own user
  std::string
      job{};  // the id of the job that it belongs to: by its own REMOTE_JOB_ID or that of a parent; or ""
  std::optional<std::chrono::seconds> age{};  // since it began
};

struct Gpu {
  GpuVendor vendor = GpuVendor::nvidia;
  int index = 0;              // as the vendor's program counts
  std::string uuid{};         // "GPU-…"
  std::string pci_address{};  // "00000000:3B:00.0"
  std::string name{};         // "NVIDIA A100-SXM4-80GB"

  std::optional<std::uint64_t> memory_total{};  // bytes; memory.total
  std::optional<std::uint64_t> memory_used{};   // bytes; memory.used
  std::optional<double>
      utilisation{};  // percent of the last sample period in which anything ran; utilization.gpu
  std::optional<double> temperature{};     // degrees Celsius of the core; temperature.gpu
  std::optional<double> power{};           // watts; power.draw
  std::optional<double> power_limit{};     // watts; power.limit
  std::optional<int> clock{};              // MHz; clocks.sm
  std::optional<int> clock_max{};          // MHz; clocks.max.sm
  std::optional<int> memory_clock{};       // MHz; clocks.mem
  std::vector<ClockLimit> clock_limits{};  // those that are at work now

  std::optional<bool> ecc{};  // ecc.mode.current
  std::optional<std::uint64_t>
      ecc_uncorrected{};  // since the driver was loaded; ecc.errors.uncorrected.volatile.total
  std::optional<std::uint64_t> ecc_uncorrected_lifetime{};  // ecc.errors.uncorrected.aggregate.total
  // A row or page of its memory waits for a reset of the GPU to be taken out of use: XML
  // remapped_row_pending, or retired_pages.pending.
  std::optional<bool> remap_pending{};
  std::optional<bool> remap_failed{};  // XML remapped_row_failure: it has no spare rows left

  std::optional<bool> persistence{};          // persistence_mode
  std::optional<std::string> compute_mode{};  // "Default", "Exclusive_Process", "Prohibited"
  std::optional<bool> mig{};                  // mig.mode.current: divided into instances

  // "GPU is lost" or "has fallen off the bus": it answers nothing until the server is restarted.
  bool lost = false;
  // Fields that should have an answer and got an error instead ("[Unknown Error]", "ERR!").
  std::vector<std::string> unreadable{};
  std::vector<GpuProcess> processes{};
};

// What became of asking a vendor's program.
enum class GpuToolState {
  answered,
  no_devices,        // "No devices were found"
  no_driver,         // it "couldn't communicate with the NVIDIA driver"
  version_mismatch,  // "Driver/library version mismatch": the driver was updated and not loaded anew
  lost_device,       // it stopped at a GPU that has fallen off the bus
  no_permission,     // this user may not
  no_access,         // NVML's "Unknown Error": a container has lost its access to the devices
  hangs,             // it did not answer in time
  failed             // anything else, also an answer that is not understood
};

// "no driver", "version mismatch", …: a short name for messages and JSON.
std::string name_of(GpuToolState state);

struct GpuTool {
  GpuVendor vendor = GpuVendor::nvidia;
  std::string program{};  // "nvidia-smi"
  GpuToolState state = GpuToolState::answered;
  std::string text{};            // what it said, where it did not answer
  std::string driver_version{};  // "550.54.15"; or ""
  std::string
      library_version{};  // the newest CUDA that the driver supports ("12.4"), or ROCm's version; or ""
};

// How two GPUs, or a GPU and a network card, reach each other: `nvidia-smi topo -m`. From near to far:
// NV1…NV18 (so many NVLinks), PIX (one PCIe bridge), PXB (several), PHB (through the CPU), NODE (between PCIe
// hosts of one NUMA node), SYS (between NUMA nodes). "X" is the device itself.
struct GpuTopology {
  std::vector<std::string> devices{};             // "GPU0", "NIC0" (or "mlx5_0"): the columns
  std::vector<std::vector<std::string>> links{};  // a row a device, a word a column
};

// An error that the driver has written to the kernel's log since the server was started.
struct XidError {
  std::string pci_address{};  // "0000:3b:00"
  int code = 0;               // 79: fallen off the bus; 48: uncorrectable ECC; NVIDIA's list has them all
  std::string text{};         // what follows the number
};

// A variable in the environment of jobs that hides GPUs from programs.
struct VisibleDevices {
  std::string variable{};  // "CUDA_VISIBLE_DEVICES"
  std::string value{};
  bool by_prologue = false;  // or by the Python environment; else by the login
};

// All about the GPUs of a server.
struct GpuFacts {
  std::vector<Gpu> gpus{};
  std::vector<GpuTool> tools{};                 // one for each vendor's program that the server has
  std::optional<GpuTopology> topology{};        // of NVIDIA's GPUs, where it was asked for
  std::optional<std::vector<XidError>> xids{};  // nullopt: not asked for, or this user may not read the log
  std::vector<VisibleDevices> visible{};
};

}  // namespace remote
