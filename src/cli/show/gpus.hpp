#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>
#include <remote/gpu.hpp>

// GPUs as JSON and as words for people.

namespace remote::cli {

// {"gpus": [{…}], "tools": [{…}], "topology": {…}|null, "xids": […]|null}: sizes in bytes, as gpu.hpp names
// them; null for what is not known.
nlohmann::json to_json(const GpuFacts& facts);
nlohmann::json to_json(const Gpu& gpu);

std::string name_of(GpuVendor vendor);  // "nvidia"

// Whether something uses it, also where it is not seen what: drivers and containers hide processes. nullopt:
// nothing is known.
std::optional<bool> in_use(const Gpu& gpu);

// "2 of 8, 61.2 GiB of 640 GiB": how many are in use, and their memory; "-" where there are none.
std::string in_short(const GpuFacts& facts);

// "17 MiB", "39.6 GiB".
std::string mebi_or_gibi(double bytes);

}  // namespace remote::cli
