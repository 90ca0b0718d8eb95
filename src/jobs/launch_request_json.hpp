#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <remote/launch.hpp>

// The request in a launch record: everything that is needed to repeat the launch and is not stored elsewhere
// in the record.

namespace remote::jobs {

// Omits the command, name and note. Variables in `secrets` have the value null.
nlohmann::ordered_json to_json(const LaunchRequest& request, const std::vector<std::string>& secrets);

// Parses that JSON. Throws exceptions of nlohmann::json for wrong types.
void take_json(const nlohmann::ordered_json& json, LaunchRequest& request, std::vector<std::string>& secrets);

}  // namespace remote::jobs
