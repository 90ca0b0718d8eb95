#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// GPU facts reported by a server. An absent value means that the vendor's program does not report it for this
// GPU
// ("[N/A]", "[Not Supported]") or that this version of the program does not know it; it never means zero.
// Text is
// unmodified server output: display it only through something like visible_line().
//
// Sources: the manual of nvidia-smi(1) and NVML's nvml.h; the JSON of `amd-smi` and `rocm-smi`; the manual of
// xpu-smi.
// The AMD and Intel sides were written from documentation and have never run on such hardware.

namespace remote {

enum class GpuVendor { nvidia, amd, intel };

// Why a GPU's clocks are reduced: the bits of nvidia-smi's clocks_event_reasons.active, which drivers before
// 535 call clocks_throttle_reasons.active.
enum class ClockLimit {
  idle,                  // gpu_idle: nothing to do
  application_setting,   // applications_clocks_setting: set by a user
  power_cap,             // sw_power_cap: the power limit is reached, which is normal under full load
  hardware_slowdown,     // hw_slowdown: by half or more, because of heat or power
  sync_boost,            // sync_boost: it waits for the other GPUs of its group
  software_thermal,      // sw_thermal_slowdown: too warm
  hardware_thermal,      // hw_thermal_slowdown: too hot
  hardware_power_brake,  // hw_power_brake_slowdown: requested by the server's power supply
  display_setting,       // display_clocks_setting
  other                  // a bit that this version does not know
};

// The name in nvidia-smi, "hw_thermal_slowdown", or "other".
std::string name_of(ClockLimit limit);
// Whether it deserves a warning: a slowdown because of heat or by the hardware. Idle, settings and the power
// cap do not.
bool is_fault(ClockLimit limit);

// A process that uses memory of a GPU.
struct GpuProcess {
  int pid = 0;                            // in the server's PID namespace, outside of containers
  std::string name;                       // from the vendor's program, or else from /proc/PID/comm; may be ""
  std::optional<std::uint64_t> memory{};  // bytes on this GPU
  std::string user{};                     // owner's name, or user ID if it has no name; "": not visible
  bool own = false;                       // owned by the login's user
  std::string job{};  // id of its job, from REMOTE_JOB_ID of the process or one of its parents; or ""
  std::optional<std::chrono::seconds> age{};  // since the process started
};

struct Gpu {
  GpuVendor vendor = GpuVendor::nvidia;
  int index = 0;              // the vendor's numbering
  std::string uuid{};         // "GPU-…"
  std::string pci_address{};  // "00000000:3B:00.0"
  std::string name{};         // "NVIDIA A100-SXM4-80GB"

  std::optional<std::uint64_t> memory_total{};  // bytes; memory.total
  std::optional<std::uint64_t> memory_used{};   // bytes; memory.used
  std::optional<double> utilisation{};     // percent of the last sample period with activity; utilization.gpu
  std::optional<double> temperature{};     // core temperature in degrees Celsius; temperature.gpu
  std::optional<double> power{};           // watts; power.draw
  std::optional<double> power_limit{};     // watts; power.limit
  std::optional<int> clock{};              // MHz; clocks.sm
  std::optional<int> clock_max{};          // MHz; clocks.max.sm
  std::optional<int> memory_clock{};       // MHz; clocks.mem
  std::vector<ClockLimit> clock_limits{};  // those active now

  std::optional<bool> ecc{};  // ecc.mode.current
  std::optional<std::uint64_t>
      ecc_uncorrected{};  // since the driver was loaded; ecc.errors.uncorrected.volatile.total
  std::optional<std::uint64_t> ecc_uncorrected_lifetime{};  // ecc.errors.uncorrected.aggregate.total
  // A row or page of its memory will be retired at the next GPU reset: XML remapped_row_pending, or
  // retired_pages.pending.
  std::optional<bool> remap_pending{};
  std::optional<bool> remap_failed{};  // XML remapped_row_failure: no spare rows left

  std::optional<bool> persistence{};          // persistence_mode
  std::optional<std::string> compute_mode{};  // "Default", "Exclusive_Process", "Prohibited"
  std::optional<bool> mig{};                  // mig.mode.current: partitioned into instances

  // "GPU is lost" or "has fallen off the bus": it does not respond until the server is rebooted.
  bool lost = false;
  // Fields that should have a value but returned an error ("[Unknown Error]", "ERR!").
  std::vector<std::string> unreadable{};
  std::vector<GpuProcess> processes{};
};

// The outcome of running a vendor's program.
enum class GpuToolState {
  answered,
  no_devices,        // "No devices were found"
  no_driver,         // it "couldn't communicate with the NVIDIA driver"
  version_mismatch,  // "Driver/library version mismatch": the driver was updated but not reloaded
  lost_device,       // it stopped at a GPU that has fallen off the bus
  no_permission,     // the user lacks permission
  no_access,         // NVML's "Unknown Error": a container has lost its access to the devices
  hangs,             // it did not answer in time
  failed             // anything else, including output that cannot be parsed
};

// "no driver", "version mismatch", …: a short name for messages and JSON.
std::string name_of(GpuToolState state);

struct GpuTool {
  GpuVendor vendor = GpuVendor::nvidia;
  std::string program{};  // "nvidia-smi"
  GpuToolState state = GpuToolState::answered;
  std::string text{};            // its output, if it failed
  std::string driver_version{};  // "550.54.15"; or ""
  std::string
      library_version{};  // the newest CUDA that the driver supports ("12.4"), or ROCm's version; or ""
};

// How two GPUs, or a GPU and a network card, are connected, from `nvidia-smi topo -m`. From near to far:
// NV1…NV18 (number of NVLinks), PIX (one PCIe bridge), PXB (several), PHB (through the CPU), NODE (between
// PCIe hosts of one NUMA node), SYS (between NUMA nodes). "X" is the device itself.
struct GpuTopology {
  std::vector<std::string> devices{};             // "GPU0", "NIC0" (or "mlx5_0"): the columns
  std::vector<std::vector<std::string>> links{};  // one row per device, one entry per column
};

// An error that the driver has written to the kernel log since boot.
struct XidError {
  std::string pci_address{};  // "0000:3b:00"
  int code = 0;        // 79: fallen off the bus; 48: uncorrectable ECC error; see NVIDIA's list of Xid errors
  std::string text{};  // the text after the number
};

// A variable in the environment of jobs that hides GPUs from programs.
struct VisibleDevices {
  std::string variable{};  // "CUDA_VISIBLE_DEVICES"
  std::string value{};
  bool by_prologue = false;  // set by the prologue or the Python environment; false: set by the login
};

struct GpuFacts {
  std::vector<Gpu> gpus{};
  std::vector<GpuTool> tools{};                 // one for each vendor's program on the server
  std::optional<GpuTopology> topology{};        // of NVIDIA GPUs, if requested
  std::optional<std::vector<XidError>> xids{};  // nullopt: not requested, or no permission to read the log
  std::vector<VisibleDevices> visible{};
};

}  // namespace remote
