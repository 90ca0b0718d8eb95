// xpu-smi (Intel XPU Manager 1.2): the JSON of `discovery -j` and the CSV of `dump`. Not tested on an Intel
// GPU.

#include <algorithm>

#include "agent/gpus/vendors.hpp"
#include "base/strings.hpp"
#include "wire/parse_json.hpp"

namespace remote::agent {
namespace {

using wire::Value;

[[noreturn]] void refuse_intel(const char* why) {
  throw BadAnswer(why);
}

std::string find_intel_text(const Value& object, const char* name) {
  const Value* found = object.find(name);
  return std::string(found != nullptr && found->is(Value::Kind::string) ? found->string : "");
}

// {"device_list": [{"device_id": 0, "device_name": …, "pci_bdf_address": …, "uuid": …}, …]}
std::vector<Gpu> read_intel_list(const ToolOutput& output) {
  const auto json = wire::JsonDocument::parse(join_lines(output));
  const Value* list = json ? json->value().find("device_list") : nullptr;
  if (list == nullptr || !list->is(Value::Kind::list)) {
    refuse_intel("it has no list of devices");
  }
  std::vector<Gpu> gpus;
  for (const Value& device : list->values) {
    const Value* id = device.find("device_id");
    if (id == nullptr || !id->is(Value::Kind::unsigned_integer) || id->number >= most_gpus ||
        gpus.size() >= most_gpus) {
      refuse_intel("a device has no number");
    }
    Gpu gpu;
    gpu.vendor = GpuVendor::intel;
    gpu.index = static_cast<int>(id->number);
    gpu.name = find_intel_text(device, "device_name");
    gpu.uuid = find_intel_text(device, "uuid");
    gpu.pci_address = find_intel_text(device, "pci_bdf_address");
    if (const Value* memory = device.find("memory_physical_size_byte")) {
      // This is usually a number in quotes.
      gpu.memory_total = memory->is(Value::Kind::string) ? parse_number<std::uint64_t>(memory->string)
                         : memory->is(Value::Kind::unsigned_integer) ? std::optional(memory->number)
                                                                     : std::nullopt;
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> found = split(line, ',');
  for (std::string& cell : found) {
    cell = trim(cell);
  }
  return found;
}

void read_intel_cell(Gpu& gpu, std::string_view column, const std::string& cell) {
  if (column == "GPU Utilization (%)") {
    gpu.utilisation = parse_between(cell, 0, 100);
  } else if (column == "GPU Power (W)") {
    gpu.power = parse_between(cell, 0, 100'000);
  } else if (column == "GPU Frequency (MHz)") {
    if (const auto clock = parse_between(cell, 0, 100'000)) {
      gpu.clock = static_cast<int>(*clock);
    }
  } else if (column == "GPU Core Temperature (Celsius Degree)") {
    gpu.temperature = parse_between(cell, -100, 300);
  } else if (column == "GPU Memory Used (MiB)") {
    if (const auto used = parse_between(cell, 0, 1e9)) {
      gpu.memory_used = static_cast<std::uint64_t>(*used) * mebibyte;
    }
  }
}

// "Timestamp, DeviceId, GPU Utilization (%), …", then a line per device, with "N/A" for missing values.
void read_intel_dump(const ToolOutput& output, std::vector<Gpu>& gpus) {
  std::vector<std::string> columns;
  for (const std::string& line : output.lines) {
    const std::vector<std::string> found = split_csv(line);
    if (columns.empty()) {
      if (found.size() >= 2 && found[0] == "Timestamp" && found[1] == "DeviceId") {
        columns = found;
      }
      continue;
    }
    const auto id = found.size() == columns.size() ? parse_number<int>(found[1]) : std::nullopt;
    if (!id) {
      refuse_intel("a line of its dump is wrong");
    }
    const auto gpu = std::ranges::find(gpus, *id, &Gpu::index);
    for (std::size_t i = 2; i < found.size() && gpu != gpus.end(); ++i) {
      read_intel_cell(*gpu, columns[i], found[i]);
    }
  }
}

}  // namespace

void read_intel(const IntelOutputs& outputs, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  tool.state = find_state(outputs.list);
  if (tool.state != GpuToolState::answered) {
    tool.text = summarize(outputs.list);
    return;
  }
  std::vector<Gpu> gpus = read_intel_list(outputs.list);
  if (outputs.dump && outputs.dump->code == 0) {
    read_intel_dump(*outputs.dump, gpus);
  }
  if (gpus.empty()) {
    tool.state = GpuToolState::no_devices;
  }
  facts.gpus.insert(facts.gpus.end(), gpus.begin(), gpus.end());
}

}  // namespace remote::agent
