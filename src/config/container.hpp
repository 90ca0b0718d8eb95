#pragma once

#include <optional>
#include <string>

namespace remote::config {

// What is wrong with the name of a container's image; nullopt: nothing.
std::optional<std::string> image_problem(const std::string& text);

}  // namespace remote::config
