#pragma once

#include <nlohmann/json.hpp>
#include <remote/report.hpp>

// Parts of the report's data; docs/report.md describes them.

namespace remote::cli {

// What the servers were and what their processes got, each fact with the servers that share a value. null
// where the launch's beginning was not recorded.
nlohmann::ordered_json environment_json(const Report& report);

// The steps of its beginning, and what happened when. Milliseconds since the epoch.
nlohmann::ordered_json timeline_json(const Report& report);

// What GPUs did while somebody looked; an empty list where nobody did, or there are none.
nlohmann::ordered_json gpus_json(const Report& report);

// The bandwidth that was measured between its servers; null: none was.
nlohmann::ordered_json measured_json(const Report& report);

}  // namespace remote::cli
