#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>
#include <remote/gpu.hpp>

// GPUs as JSON and as text.

namespace remote::cli {

// {"gpus": [{…}], "tools": [{…}], "topology": {…}|null, "xids": […]|null}: sizes in bytes, names as in
// gpu.hpp; null for unknown values.
nlohmann::json to_json(const GpuFacts& facts);
nlohmann::json to_json(const Gpu& gpu);

std::string name_of(GpuVendor vendor);  // "nvidia"

// Whether any process uses it, even if the process is not visible: drivers and containers hide processes.
// nullopt: unknown.
std::optional<bool> in_use(const Gpu& gpu);

// "2 of 8, 61.2 GiB of 640 GiB": the number in use, and their memory; "-" if there are no GPUs.
std::string in_short(const GpuFacts& facts);

// "17 MiB", "39.6 GiB".
std::string mebi_or_gibi(double bytes);

}  // namespace remote::cli
