#include "rules/usable.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.hpp"

namespace remote::rules {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A vendor's variables, in the order in which they apply. Of those in one list, the first that is set counts.
std::vector<std::vector<std::string_view>> list_variables(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvidia:
      return {{"CUDA_VISIBLE_DEVICES"}};
    case GpuVendor::amd:
      return {{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}};
    case GpuVendor::intel:
      break;
  }
  return {{"ZE_AFFINITY_MASK"}};
}

struct Setting {
  std::string variable;
  std::string value;
  HiddenBy by = HiddenBy::nobody;
};

std::optional<Setting> find_setting(const GpuFacts& facts, const Variables& given,
                                    const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    const auto own = std::ranges::find(facts.visible, name, &VisibleDevices::variable);
    if (own != facts.visible.end() && own->by_prologue) {
      return Setting{own->variable, own->value, HiddenBy::prologue};
    }
    for (auto each = given.rbegin(); each != given.rend(); ++each) {
      if (each->first == name) {
        return Setting{each->first, each->second, HiddenBy::launch};
      }
    }
    if (own != facts.visible.end()) {
      return Setting{own->variable, own->value, HiddenBy::login};
    }
  }
  return std::nullopt;
}

std::size_t count_devices(const std::vector<const Gpu*>& devices) {
  return devices.size() - static_cast<std::size_t>(std::ranges::count(devices, nullptr));
}

// Keeps only the devices that the variable's value names, in its order, up to the first name that matches
// none. Null elements are not usable. Returns how many other devices it names that are not in the list.
int hide_devices(std::string_view value, std::vector<const Gpu*>& devices, bool are_known) {
  const bool has_uuids =
      std::ranges::any_of(devices, [](const Gpu* gpu) { return gpu != nullptr && !gpu->uuid.empty(); });
  std::vector<const Gpu*> left;
  int unknown = 0;
  for (const std::string& part : split(value, ',')) {
    const std::string_view name = trim(part);
    const Gpu* found = nullptr;
    bool is_unknown = name.starts_with("MIG-");
    // "0.1" is a tile of GPU 0.
    if (const auto index = remote::parse_number<std::size_t>(name.substr(0, name.find('.')))) {
      found = *index < devices.size() ? devices[*index] : nullptr;
      is_unknown = !are_known;
    } else if (name.starts_with("GPU-")) {
      const auto same = std::ranges::find_if(
          devices, [&](const Gpu* gpu) { return gpu != nullptr && gpu->uuid.starts_with(name); });
      found = same == devices.end() ? nullptr : *same;
      is_unknown = !has_uuids;
    }
    if (found == nullptr && !is_unknown) {
      break;
    }
    if (found == nullptr) {
      ++unknown;
    } else if (std::ranges::find(left, found) == left.end()) {
      left.push_back(found);
    }
  }
  devices = std::move(left);
  return unknown;
}

}  // namespace

UsableCpus count_cpus(const ServerFacts& facts) {
  UsableCpus usable;
  usable.count = std::max(facts.usable_threads, 1);
  usable.all = std::max(facts.threads, usable.count);
  if (usable.count < usable.all) {
    usable.bound = CpuBound::affinity;
  }
  if (facts.cpu_limit && std::ceil(*facts.cpu_limit) < usable.count) {
    usable.count = std::max(static_cast<int>(std::ceil(*facts.cpu_limit)), 1);
    usable.bound = CpuBound::quota;
  }
  return usable;
}

UsableMemory count_memory(const ServerFacts& facts) {
  UsableMemory usable{.total = facts.memory, .available = facts.memory_available};
  if (facts.memory_limit && *facts.memory_limit < facts.memory) {
    usable.total = *facts.memory_limit;
    usable.available = std::min(usable.available, usable.total);
    usable.is_limited = true;
  }
  return usable;
}

UsableGpus count_gpus(const GpuFacts& facts, const Variables& given) {
  using enum GpuVendor;
  UsableGpus usable;
  std::vector<const Gpu*> devices;
  for (const GpuVendor vendor : {nvidia, amd, intel}) {
    for (const Gpu& gpu : facts.gpus) {
      if (gpu.vendor == vendor && gpu.lost) {
        ++usable.lost;
      } else if (gpu.vendor == vendor && gpu.index >= 0) {
        usable.there.push_back(gpu.index);
        devices.resize(std::max(devices.size(), static_cast<std::size_t>(gpu.index) + 1));
        devices[static_cast<std::size_t>(gpu.index)] = &gpu;
      }
    }
    if (!devices.empty() || usable.lost > 0) {
      usable.vendor = vendor;
      break;
    }
  }
  const bool are_known = !facts.gpus.empty() || !facts.tools.empty();
  for (const auto& names : list_variables(usable.vendor)) {
    if (const auto setting = find_setting(facts, given, names)) {
      const std::size_t before = count_devices(devices) + static_cast<std::size_t>(usable.unknown);
      usable.unknown = hide_devices(setting->value, devices, are_known);
      if (count_devices(devices) + static_cast<std::size_t>(usable.unknown) < before) {
        usable.variable = setting->variable;
        usable.hidden_by = setting->by;
      }
    }
  }
  for (const Gpu* gpu : devices) {
    if (gpu != nullptr) {
      usable.indices.push_back(gpu->index);
    }
  }
  return usable;
}

bool share_gpus(const ServerFacts& one, const std::vector<int>& gpus, const ServerFacts& other,
                const std::vector<int>& other_gpus) {
  const std::vector<Gpu>& own = one.gpus.gpus;
  const bool is_one_machine = !one.machine.empty() && one.machine != "0" && one.machine == other.machine &&
                              !own.empty() && !own.front().uuid.empty() &&
                              std::ranges::equal(own, other.gpus.gpus, {}, &Gpu::uuid, &Gpu::uuid);
  const bool are_split = !gpus.empty() && !other_gpus.empty() && std::ranges::none_of(gpus, [&](int index) {
    return std::ranges::count(other_gpus, index) > 0;
  });
  return is_one_machine && !are_split;
}

const GpuTool* find_failed_tool(const GpuFacts& facts) {
  using enum GpuToolState;
  const UsableGpus usable = count_gpus(facts);
  const auto fails = [&](const GpuTool& tool) {
    if (tool.state == answered || tool.state == no_devices) {
      return false;
    }
    // If there are GPUs of another vendor, a program without a driver only happens to be installed.
    return usable.there.empty() || (tool.vendor < usable.vendor && tool.state != no_driver);
  };
  const auto found = std::ranges::find_if(facts.tools, fails);
  return found == facts.tools.end() ? nullptr : &*found;
}

}  // namespace remote::rules
