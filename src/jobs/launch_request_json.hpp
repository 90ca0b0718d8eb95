#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <remote/launch.hpp>

// What was asked of a launch, in its record: what a repetition needs and the record does not have elsewhere.

namespace remote::jobs {

// Without its command, name and note. Variables in `secrets` have null for a value.
nlohmann::ordered_json to_json(const LaunchRequest& request, const std::vector<std::string>& secrets);

// Takes that back. Throws nlohmann's exceptions for what is of the wrong type.
void take_json(const nlohmann::ordered_json& json, LaunchRequest& request, std::vector<std::string>& secrets);

}  // namespace remote::jobs
