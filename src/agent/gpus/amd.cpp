// The JSON of amd-smi and rocm-smi, according to AMD's documentation of ROCm 5.4 to 6.4. Not tested on an AMD
// GPU.

#include <algorithm>

#include "agent/gpus/vendors.hpp"
#include "base/strings.hpp"
#include "wire/parse_json.hpp"

namespace remote::agent {
namespace {

using wire::JsonDocument;
using wire::Value;

[[noreturn]] void refuse_amd(const char* why) {
  throw BadAnswer(why);
}

// These programs may print warnings before the JSON.
JsonDocument parse_amd_json(const ToolOutput& output) {
  const std::string text = join_lines(output);
  std::optional<JsonDocument> json =
      JsonDocument::parse(text.substr(std::min(text.find_first_of("[{"), text.size())));
  if (!json) {
    refuse_amd("it is not JSON");
  }
  return *std::move(json);
}

std::string find_text(const Value& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Value* found = object.find(name);
    if (found != nullptr && found->is(Value::Kind::string) && found->string != "N/A") {
      return std::string(found->string);
    }
  }
  return {};
}

// Parses 61, "61.0", or {"value": 61, "unit": "W"}; nullopt for "N/A".
std::optional<double> read_number(const Value& value, double high) {
  const Value* inner = value.find("value");
  const Value& bare = inner != nullptr ? *inner : value;
  if (bare.is_number()) {
    const double number = bare.to_double();
    return number >= 0 && number <= high ? std::optional(number) : std::nullopt;
  }
  return bare.is(Value::Kind::string) ? parse_between(bare.string, 0, high) : std::nullopt;
}

std::optional<double> find_number(const Value& object, std::initializer_list<const char*> names,
                                  double high) {
  for (const char* name : names) {
    const Value* found = object.find(name);
    if (const auto number = found != nullptr ? read_number(*found, high) : std::nullopt) {
      return number;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> to_bytes(std::optional<double> number, std::uint64_t unit) {
  return number ? std::optional(static_cast<std::uint64_t>(*number * static_cast<double>(unit)))
                : std::nullopt;
}

// A member that is an object; an empty object if there is none.
const Value& find_object(const Value& object, const char* name) {
  static const Value none{Value::Kind::object};
  const Value* found = object.find(name);
  return found != nullptr && found->is(Value::Kind::object) ? *found : none;
}

constexpr double most_amd_bytes = 1e15;

// rocm-smi: {"card0": {"GPU use (%)": "7", …}, "system": {"Driver version": "6.7.0"}}
void read_rocm(const ToolOutput& output, GpuTool& tool, std::vector<Gpu>& gpus) {
  const JsonDocument json = parse_amd_json(output);
  if (!json.value().is(Value::Kind::object)) {
    refuse_amd("it is not an object");
  }
  for (const Value& card : json.value().values) {
    if (card.name == "system" && card.is(Value::Kind::object)) {
      tool.driver_version = find_text(card, {"Driver version"});
    }
    const auto index = card.name.starts_with("card") ? parse_number<int>(card.name.substr(4)) : std::nullopt;
    if (!index || *index < 0 || *index >= static_cast<int>(most_gpus) || !card.is(Value::Kind::object)) {
      continue;
    }
    Gpu gpu;
    gpu.vendor = GpuVendor::amd;
    gpu.index = *index;
    gpu.uuid = find_text(card, {"Unique ID"});
    gpu.pci_address = find_text(card, {"PCI Bus"});
    gpu.name = find_text(card, {"Card Series", "Card series", "Card Model", "Card model"});
    gpu.memory_total = to_bytes(find_number(card, {"VRAM Total Memory (B)"}, most_amd_bytes), 1);
    gpu.memory_used = to_bytes(find_number(card, {"VRAM Total Used Memory (B)"}, most_amd_bytes), 1);
    gpu.utilisation = find_number(card, {"GPU use (%)"}, 100);
    gpu.temperature =
        find_number(card, {"Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"}, 300);
    gpu.power = find_number(
        card, {"Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"}, 100'000);
    gpu.power_limit = find_number(card, {"Max Graphics Package Power (W)"}, 100'000);
    gpus.push_back(std::move(gpu));
  }
}

// amd-smi: [{"gpu": 0, …}, …], since ROCm 7 {"gpu_data": […]}
const std::vector<Value>& list_amd_devices(const JsonDocument& json) {
  const Value* inner = json.value().find("gpu_data");
  const Value& list = inner != nullptr ? *inner : json.value();
  if (!list.is(Value::Kind::list)) {
    refuse_amd("it is not a list");
  }
  for (const Value& device : list.values) {
    if (!find_number(device, {"gpu"}, most_gpus)) {
      refuse_amd("a device has no number");
    }
  }
  return list.values;
}

Gpu& find_or_add(std::vector<Gpu>& gpus, int index) {
  const auto found = std::ranges::find(gpus, index, &Gpu::index);
  if (found != gpus.end()) {
    return *found;
  }
  Gpu gpu;
  gpu.vendor = GpuVendor::amd;
  gpu.index = index;
  return gpus.emplace_back(std::move(gpu));
}

void read_amd_smi(const ToolOutput& fixed, const std::optional<ToolOutput>& metric, GpuTool& tool,
                  std::vector<Gpu>& gpus) {
  const JsonDocument fixed_json = parse_amd_json(fixed);
  for (const Value& device : list_amd_devices(fixed_json)) {
    Gpu& gpu = find_or_add(gpus, static_cast<int>(*find_number(device, {"gpu"}, most_gpus)));
    gpu.name = find_text(find_object(device, "asic"), {"market_name"});
    gpu.uuid = find_text(find_object(device, "asic"), {"asic_serial"});
    gpu.pci_address = find_text(find_object(device, "bus"), {"bdf"});
    gpu.power_limit = find_number(find_object(device, "limit"), {"max_power", "socket_power"}, 100'000);
    gpu.memory_total = to_bytes(find_number(find_object(device, "vram"), {"size"}, 1e9), mebibyte);
    tool.driver_version = find_text(find_object(device, "driver"), {"version", "driver_version"});
  }
  if (!metric || metric->code != 0) {
    return;
  }
  const JsonDocument metric_json = parse_amd_json(*metric);
  for (const Value& device : list_amd_devices(metric_json)) {
    Gpu& gpu = find_or_add(gpus, static_cast<int>(*find_number(device, {"gpu"}, most_gpus)));
    const Value& memory = find_object(device, "mem_usage");
    gpu.utilisation = find_number(find_object(device, "usage"), {"gfx_activity"}, 100);
    gpu.power = find_number(find_object(device, "power"), {"socket_power"}, 100'000);
    gpu.temperature = find_number(find_object(device, "temperature"), {"edge", "hotspot"}, 300);
    gpu.memory_used = to_bytes(find_number(memory, {"used_vram"}, 1e9), mebibyte);
    if (const auto total = to_bytes(find_number(memory, {"total_vram"}, 1e9), mebibyte)) {
      gpu.memory_total = total;
    }
    gpu.ecc_uncorrected =
        to_bytes(find_number(find_object(device, "ecc"), {"total_uncorrectable_count"}, 1e15), 1);
  }
}

}  // namespace

void read_amd(const AmdOutputs& outputs, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  const ToolOutput& first = outputs.rocm ? *outputs.rocm : outputs.fixed;
  tool.state = find_state(first);
  if (tool.state != GpuToolState::answered) {
    tool.text = summarize(first);
    return;
  }
  std::vector<Gpu> gpus;
  if (outputs.rocm) {
    read_rocm(first, tool, gpus);
  } else {
    read_amd_smi(first, outputs.metric, tool, gpus);
  }
  if (gpus.empty()) {
    tool.state = GpuToolState::no_devices;
  }
  std::ranges::sort(gpus, {}, &Gpu::index);
  facts.gpus.insert(facts.gpus.end(), gpus.begin(), gpus.end());
}

}  // namespace remote::agent
