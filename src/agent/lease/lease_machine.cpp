#include "agent/lease/lease_machine.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <unistd.h>

#include "agent/facts/activation.hpp"
#include "agent/facts/cgroups.hpp"
#include "agent/facts/machine.hpp"
#include "agent/gpus/ask.hpp"
#include "agent/gpus/gpus.hpp"
#include "agent/gpus/visible_devices.hpp"
#include "agent/host/files.hpp"
#include "base/strings.hpp"
#include "rules/usable.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using LeaseGpus = std::vector<rules::LeaseMachine::Gpu>;

constexpr std::chrono::seconds driver_limit{20};
constexpr int lost_gpu = 15;  // nvidia-smi's exit code; the other GPUs still respond

// `failure`: why nvidia-smi does not respond.
LeaseGpus read_nvidia_gpus(const Host& host, std::string& failure) {
  if (host.find_program("nvidia-smi").empty()) {
    return {};
  }
  const std::string csv = "--format=csv,noheader,nounits";
  NvidiaOutputs outputs{.fields = {"index", "uuid"}};
  outputs.query = ask_tool(host, driver_limit, {"nvidia-smi", "--query-gpu=index,uuid", csv});
  if (outputs.query.code != 0 && outputs.query.code != lost_gpu) {
    const GpuToolState state = find_state(outputs.query);
    failure = state == GpuToolState::no_devices ? ""
              : state == GpuToolState::hangs    ? "nvidia-smi hangs"
                                                : wire::to_line(summarize(outputs.query), 300);
    return {};
  }
  outputs.apps = ask_tool(host, driver_limit,
                          {"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory,process_name", csv});
  int& code = outputs.apps->code;
  code = code == lost_gpu ? 0 : code;
  const bool has_apps = code == 0;
  LeaseGpus gpus;
  for (const Gpu& gpu : parse_gpus({.nvidia = std::move(outputs)}).gpus) {
    if (!gpu.lost && !gpu.uuid.empty()) {
      gpus.push_back({gpu.index, gpu.uuid, !gpu.processes.empty()});
    }
  }
  if (!gpus.empty() && !has_apps) {
    throw LeaseRefused("nvidia-smi does not report which processes use its GPUs");
  }
  return gpus;
}

// The kernel's driver lists all processes of all users in /sys. The order of its nodes is that of ROCm.
LeaseGpus read_amd_gpus(const Host& host) {
  const Path nodes = host.system("/sys/class/kfd/kfd/topology/nodes");
  std::vector<int> numbers;
  for (const std::string& name : list_names(nodes)) {
    const auto number = parse_number<int>(name);
    if (!number) {
      return {};
    }
    numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  LeaseGpus gpus;
  for (const int node : numbers) {
    const std::string id(trim(read_first_line(nodes / std::to_string(node) / "gpu_id")));
    if (parse_number<std::uint64_t>(id).value_or(0) > 0) {
      gpus.push_back({static_cast<int>(gpus.size()), "amd:" + id});
    }
  }
  const Path processes = host.system("/sys/class/kfd/kfd/proc");
  for (const std::string& pid : gpus.empty() ? std::vector<std::string>() : list_names(processes)) {
    for (auto& gpu : gpus) {
      const std::string_view id = std::string_view(gpu.key).substr(4);
      const std::string used(trim(read_first_line(processes / pid / ("vram_" + std::string(id)))));
      gpu.is_used = gpu.is_used || (!used.empty() && used != "0");
    }
  }
  return gpus;
}

// Intel's program shows processes only to root, so only leases are considered.
LeaseGpus read_intel_gpus(const Host& host) {
  if (host.find_program("xpu-smi").empty()) {
    return {};
  }
  const ToolOutput list = ask_tool(host, driver_limit, {"xpu-smi", "discovery", "-j"});
  LeaseGpus gpus;
  for (const Gpu& gpu : parse_gpus({.intel = IntelOutputs{.list = list}}).gpus) {
    gpus.push_back({gpu.index, "intel:" + std::to_string(gpu.index)});
  }
  return gpus;
}

// Keeps only the GPUs that the user may see.
void hide_gpus(const Host& host, LeaseMachine& machine) {
  LeaseGpus& gpus = machine.resources.gpus;
  machine.server_gpus = gpus.size();
  machine.visible = read_visible_devices(host);
  GpuFacts facts{.visible = machine.visible};
  for (const auto& gpu : gpus) {
    Gpu& device = facts.gpus.emplace_back();
    device.vendor = machine.vendor;
    device.index = gpu.index;
    device.uuid = machine.vendor == GpuVendor::nvidia ? gpu.key : "";
  }
  const UsableGpus usable = rules::count_gpus(facts);
  machine.hiding_variable = usable.variable;
  std::erase_if(gpus, [&](const auto& gpu) {
    return std::ranges::find(usable.indices, gpu.index) == usable.indices.end();
  });
}

// A site may add its drivers' programs to PATH only in the prologue of jobs.
Host find_lease_programs(const Host& host, const std::string& prologue) {
  Host found = find_gpu_programs(host);
  if (!prologue.empty() && !has_gpu_program(found)) {
    if (const auto entered = find_gpu_environment(host, prologue)) {
      found.environment["PATH"] = entered->path;
    }
  }
  return found;
}

void read_lease_gpus(const Host& host, const std::string& prologue, LeaseMachine& machine) {
  const Host with_programs = find_lease_programs(host, prologue);
  using enum GpuVendor;
  std::string failure;
  for (const GpuVendor vendor : {nvidia, amd, intel}) {
    machine.vendor = vendor;
    machine.resources.gpus = vendor == nvidia ? read_nvidia_gpus(with_programs, failure)
                             : vendor == amd  ? read_amd_gpus(with_programs)
                                              : read_intel_gpus(with_programs);
    if (!machine.resources.gpus.empty()) {
      hide_gpus(host, machine);
      return;
    }
  }
  if (!failure.empty()) {
    throw DriverFails("the driver does not answer: " + failure);
  }
}

}  // namespace

rules::LeaseNeeds to_needs(const wire::LeaseTerms& terms) {
  rules::LeaseNeeds needs{.gpus = static_cast<std::size_t>(terms.gpus),
                          .cpus = static_cast<std::uint64_t>(terms.cpus),
                          .memory = terms.memory,
                          .among = {}};
  if (!terms.among.empty()) {
    needs.among.emplace(terms.among.begin(), terms.among.end());
  }
  return needs;
}

LeaseMachine read_lease_machine(const Host& host, const rules::LeaseNeeds& needs,
                                const std::string& prologue) {
  LeaseMachine machine;
  machine.resources.limits.uid = ::geteuid();
  if (needs.gpus > 0) {
    read_lease_gpus(host, prologue, machine);
  }
  if (needs.cpus > 0) {
    ServerFacts facts;
    read_machine(host, facts);
    const UsableCpus usable = rules::count_cpus(facts);
    if (usable.bound == CpuBound::quota) {
      machine.resources.limits.cpus = usable.count;
      facts.cpu_limit.reset();
    }
    machine.resources.cpus = static_cast<std::uint64_t>(rules::count_cpus(facts).count);
  }
  if (needs.memory > 0) {
    read_available_memory(host, machine.resources);
  }
  return machine;
}

void read_available_memory(const Host& host, rules::LeaseMachine& machine) {
  wire::FactsReply load;
  read_load(host, load);
  machine.memory = load.facts.memory;
  machine.available = load.facts.memory_available;
  load.facts.memory_limit = read_cgroup_limits(host).memory;
  if (const UsableMemory usable = rules::count_memory(load.facts); usable.is_limited) {
    machine.limits.memory = usable.total;
  }
}

std::string join_indices(const std::vector<rules::LeaseMachine::Gpu>& gpus) {
  std::vector<std::string> indices;
  for (const auto& gpu : gpus) {
    indices.push_back(std::to_string(gpu.index));
  }
  return join(indices, ",");
}

std::string to_gpu_variables(const LeaseMachine& machine, const std::vector<rules::LeaseMachine::Gpu>& gpus) {
  if (gpus.empty()) {
    return "";
  }
  if (machine.vendor != GpuVendor::amd) {
    const bool is_nvidia = machine.vendor == GpuVendor::nvidia;
    return (is_nvidia ? "CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=" : "ZE_AFFINITY_MASK=") +
           join_indices(gpus) + "\n";
  }
  // Within those GPUs, the user's other variables still apply.
  std::string lines;
  for (const VisibleDevices& each : machine.visible) {
    if (each.variable == "CUDA_VISIBLE_DEVICES" || each.variable == "HIP_VISIBLE_DEVICES") {
      std::vector<rules::LeaseMachine::Gpu> numbered = gpus;
      for (std::size_t i = 0; i < numbered.size(); ++i) {
        numbered[i].index = static_cast<int>(i);
      }
      lines += each.variable + "=" + join_indices(numbered) + "\n";
    }
  }
  return lines + "ROCR_VISIBLE_DEVICES=" + join_indices(gpus) + "\n";
}

}  // namespace remote::agent
