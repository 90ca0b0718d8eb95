#pragma once

#include <optional>
#include <string>

namespace remote::config {

// The problem with a container image's name; nullopt: valid.
std::optional<std::string> image_problem(const std::string& text);

}  // namespace remote::config
