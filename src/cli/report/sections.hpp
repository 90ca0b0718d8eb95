#pragma once

#include <nlohmann/json.hpp>
#include <remote/report.hpp>

// Parts of the report's data; docs/report.md describes them.

namespace remote::cli {

// Facts about the servers and variables of their processes; servers with the same value are grouped. null if
// the start of the launch was not recorded.
nlohmann::ordered_json environment_json(const Report& report);

// The steps of the start, and the events after that. Times in milliseconds since the epoch.
nlohmann::ordered_json timeline_json(const Report& report);

// The GPU samples; an empty list if none were taken, or there are no GPUs.
nlohmann::ordered_json gpus_json(const Report& report);

// The measured bandwidth between the launch's servers; null: not measured.
nlohmann::ordered_json measured_json(const Report& report);

}  // namespace remote::cli
