// xpu-smi (Intel XPU Manager 1.2), by the JSON of `discovery -j` and the CSV of `dump`. This never ran on an
// Intel GPU.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "servers/gpu_vendors.hpp"

namespace remote::servers {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string_view why) {
  throw Error("the answer of xpu-smi is not understood", std::string(why));
}

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>().substr(0, 128) : "";
}

// {"device_list": [{"device_id": 0, "device_name": …, "pci_bdf_address": …, "uuid": …}, …]}
std::vector<Gpu> read_list(const GpuOutput& output) {
  const Json json = Json::parse(text_of(output), nullptr, false);
  if (!json.is_object() || !json.contains("device_list") || !json["device_list"].is_array()) {
    refuse("it has no list of devices");
  }
  std::vector<Gpu> gpus;
  for (const Json& device : json["device_list"]) {
    const auto id = device.is_object() ? device.find("device_id") : device.end();
    if (!device.is_object() || id == device.end() || !id->is_number_unsigned() ||
        id->get<std::uint64_t>() > most_gpus) {
      refuse("a device has no number");
    }
    Gpu gpu;
    gpu.vendor = GpuVendor::intel;
    gpu.index = id->get<int>();
    gpu.name = text_at(device, "device_name");
    gpu.uuid = text_at(device, "uuid");
    gpu.pci_address = text_at(device, "pci_bdf_address");
    if (const auto memory = device.find("memory_physical_size_byte"); memory != device.end()) {
      // a number in quotes
      gpu.memory_total = memory->is_string()
                             ? parse_number<std::uint64_t>(memory->get_ref<const std::string&>())
                         : memory->is_number_unsigned() ? std::optional(memory->get<std::uint64_t>())
                                                        : std::nullopt;
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found = split(line, ',');
  for (std::string& cell : found) {
    cell = trim(cell);
  }
  return found;
}

void read_cell(Gpu& gpu, std::string_view column, const std::string& cell) {
  if (column == "GPU Utilization (%)") {
    gpu.utilisation = number_between(cell, 0, 100);
  } else if (column == "GPU Power (W)") {
    gpu.power = number_between(cell, 0, 100'000);
  } else if (column == "GPU Frequency (MHz)") {
    if (const auto clock = number_between(cell, 0, 100'000)) {
      gpu.clock = static_cast<int>(*clock);
    }
  } else if (column == "GPU Core Temperature (Celsius Degree)") {
    gpu.temperature = number_between(cell, -100, 300);
  } else if (column == "GPU Memory Used (MiB)") {
    if (const auto used = number_between(cell, 0, 1e9)) {
      gpu.memory_used = static_cast<std::uint64_t>(*used) * mebibyte;
    }
  }
}

// "Timestamp, DeviceId, GPU Utilization (%), …", then a line a device; N/A where it has none.
void read_dump(const GpuOutput& output, std::vector<Gpu>& gpus) {
  std::vector<std::string> columns;
  for (const std::string& line : output.lines) {
    const std::vector<std::string> found = cells(line);
    if (columns.empty()) {
      if (found.size() >= 2 && found[0] == "Timestamp" && found[1] == "DeviceId") {
        columns = found;
      }
      continue;
    }
    const auto id = found.size() == columns.size() ? parse_number<int>(found[1]) : std::nullopt;
    if (!id) {
      refuse("a line of its dump is wrong");
    }
    const auto gpu = std::ranges::find(gpus, *id, &Gpu::index);
    for (std::size_t i = 2; i < found.size() && gpu != gpus.end(); ++i) {
      read_cell(*gpu, columns[i], found[i]);
    }
  }
}

}  // namespace

void read_intel(const GpuOutputs& outputs, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  const auto list = outputs.find("intel-list");
  if (list == outputs.end()) {
    refuse("a part of it is missing");
  }
  tool.state = state_of(list->second);
  if (tool.state != GpuToolState::answered) {
    tool.text = text_of(list->second).substr(0, 512);
    return;
  }
  std::vector<Gpu> gpus = read_list(list->second);
  if (const auto dump = outputs.find("intel-dump"); dump != outputs.end() && dump->second.code == 0) {
    read_dump(dump->second, gpus);
  }
  if (gpus.empty()) {
    tool.state = GpuToolState::no_devices;
  }
  facts.gpus.insert(facts.gpus.end(), gpus.begin(), gpus.end());
}

}  // namespace remote::servers
