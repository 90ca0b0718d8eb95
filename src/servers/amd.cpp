// amd-smi and rocm-smi, by their JSON, as AMD's documentation of ROCm 5.4 to 6.4 shows it. This never ran on
// an AMD GPU.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "servers/gpu_vendors.hpp"

namespace remote::servers {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_answer(std::string_view program, std::string_view why) {
  throw Error(fmt::format("the answer of {} is not understood", program), std::string(why));
}

// The JSON in the output; these programs may print warnings before it.
Json parse(std::string_view program, const GpuOutput& output) {
  const std::string text = text_of(output);
  const std::size_t begin = text.find_first_of("[{");
  Json json = begin == std::string::npos ? Json(Json::value_t::discarded)
                                         : Json::parse(text.substr(begin), nullptr, false);
  if (json.is_discarded()) {
    refuse_answer(program, "it is no JSON");
  }
  return json;
}

std::string text_at(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_string() && found->get<std::string>() != "N/A") {
      return found->get<std::string>().substr(0, 128);
    }
  }
  return {};
}

// A number: 61, "61.0", or {"value": 61, "unit": "W"}. "N/A" and what is not there are none.
std::optional<double> number_of(const Json& value, double high) {
  const Json& bare = value.is_object() && value.contains("value") ? value["value"] : value;
  if (bare.is_number()) {
    const double number = bare.get<double>();
    return number >= 0 && number <= high ? std::optional(number) : std::nullopt;
  }
  return bare.is_string() ? number_between(bare.get_ref<const std::string&>(), 0, high) : std::nullopt;
}

std::optional<double> number_at(const Json& object, std::initializer_list<const char*> names, double high) {
  for (const char* name : names) {
    if (const auto found = object.find(name); found != object.end()) {
      if (const auto number = number_of(*found, high)) {
        return number;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes(std::optional<double> number, std::uint64_t unit) {
  return number ? std::optional(static_cast<std::uint64_t>(*number * static_cast<double>(unit)))
                : std::nullopt;
}

// An object within an object; an empty one where there is none.
const Json& part(const Json& object, const char* name) {
  static const Json none = Json::object();
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : none;
}

constexpr double most = 1e15;

// rocm-smi: {"card0": {"GPU use (%)": "7", …}, "system": {"Driver version": "6.7.0"}}
void read_rocm(const GpuOutput& output, GpuTool& tool, std::vector<Gpu>& gpus) {
  const Json json = parse("rocm-smi", output);
  if (!json.is_object()) {
    refuse_answer("rocm-smi", "it is no object");
  }
  for (const auto& [key, card] : json.items()) {
    if (key == "system" && card.is_object()) {
      tool.driver_version = text_at(card, {"Driver version"});
    }
    const auto index =
        key.starts_with("card") ? parse_number<int>(std::string_view(key).substr(4)) : std::nullopt;
    if (!index || *index < 0 || !card.is_object()) {
      continue;
    }
    Gpu gpu;
    gpu.vendor = GpuVendor::amd;
    gpu.index = *index;
    gpu.uuid = text_at(card, {"Unique ID"});
    gpu.pci_address = text_at(card, {"PCI Bus"});
    gpu.name = text_at(card, {"Card Series", "Card series", "Card Model", "Card model"});
    gpu.memory_total = bytes(number_at(card, {"VRAM Total Memory (B)"}, most), 1);
    gpu.memory_used = bytes(number_at(card, {"VRAM Total Used Memory (B)"}, most), 1);
    gpu.utilisation = number_at(card, {"GPU use (%)"}, 100);
    gpu.temperature =
        number_at(card, {"Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"}, 300);
    gpu.power = number_at(
        card, {"Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"}, 100'000);
    gpu.power_limit = number_at(card, {"Max Graphics Package Power (W)"}, 100'000);
    gpus.push_back(std::move(gpu));
  }
}

// amd-smi: [{"gpu": 0, …}, …], since ROCm 7 {"gpu_data": […]}
std::vector<Json> devices(std::string_view program, const GpuOutput& output) {
  Json json = parse(program, output);
  if (json.is_object() && json.contains("gpu_data")) {
    Json inner = std::move(json["gpu_data"]);  // a copy of what is deep would recurse as deep
    json = std::move(inner);
  }
  if (!json.is_array()) {
    refuse_answer(program, "it is no list");
  }
  std::vector<Json> found;
  for (Json& device : json) {
    const auto index = device.is_object() ? number_at(device, {"gpu"}, most_gpus) : std::nullopt;
    if (!index) {
      refuse_answer(program, "a device has no number");
    }
    found.push_back(std::move(device));
  }
  return found;
}

Gpu& by_index(std::vector<Gpu>& gpus, int index) {
  const auto found = std::ranges::find(gpus, index, &Gpu::index);
  if (found != gpus.end()) {
    return *found;
  }
  Gpu gpu;
  gpu.vendor = GpuVendor::amd;
  gpu.index = index;
  return gpus.emplace_back(std::move(gpu));
}

void read_amd_smi(const GpuOutput& fixed, const GpuOutput* metric, GpuTool& tool, std::vector<Gpu>& gpus) {
  for (const Json& device : devices("amd-smi static", fixed)) {
    Gpu& gpu = by_index(gpus, static_cast<int>(*number_at(device, {"gpu"}, most_gpus)));
    gpu.name = text_at(part(device, "asic"), {"market_name"});
    gpu.uuid = text_at(part(device, "asic"), {"asic_serial"});
    gpu.pci_address = text_at(part(device, "bus"), {"bdf"});
    gpu.power_limit = number_at(part(device, "limit"), {"max_power", "socket_power"}, 100'000);
    gpu.memory_total = bytes(number_at(part(device, "vram"), {"size"}, 1e9), mebibyte);
    tool.driver_version = text_at(part(device, "driver"), {"version", "driver_version"});
  }
  if (metric == nullptr || metric->code != 0) {
    return;
  }
  for (const Json& device : devices("amd-smi metric", *metric)) {
    Gpu& gpu = by_index(gpus, static_cast<int>(*number_at(device, {"gpu"}, most_gpus)));
    const Json& memory = part(device, "mem_usage");
    gpu.utilisation = number_at(part(device, "usage"), {"gfx_activity"}, 100);
    gpu.power = number_at(part(device, "power"), {"socket_power"}, 100'000);
    gpu.temperature = number_at(part(device, "temperature"), {"edge", "hotspot"}, 300);
    gpu.memory_used = bytes(number_at(memory, {"used_vram"}, 1e9), mebibyte);
    if (const auto total = bytes(number_at(memory, {"total_vram"}, 1e9), mebibyte)) {
      gpu.memory_total = total;
    }
    gpu.ecc_uncorrected = bytes(number_at(part(device, "ecc"), {"total_uncorrectable_count"}, 1e15), 1);
  }
}

}  // namespace

void read_amd(const GpuOutputs& outputs, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  const bool older = outputs.contains("rocm");
  const auto first = outputs.find(older ? "rocm" : "amd-static");
  const auto second = outputs.find("amd-metric");
  if (first == outputs.end()) {
    refuse_answer(tool.program, "a part of it is missing");
  }
  tool.state = state_of(first->second);
  if (tool.state != GpuToolState::answered) {
    tool.text = text_of(first->second).substr(0, 512);
    return;
  }
  std::vector<Gpu> gpus;
  if (older) {
    read_rocm(first->second, tool, gpus);
  } else {
    read_amd_smi(first->second, second == outputs.end() ? nullptr : &second->second, tool, gpus);
  }
  if (gpus.empty()) {
    tool.state = GpuToolState::no_devices;
  }
  std::ranges::sort(gpus, {}, &Gpu::index);
  facts.gpus.insert(facts.gpus.end(), gpus.begin(), gpus.end());
}

}  // namespace remote::servers
