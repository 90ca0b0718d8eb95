#pragma once

#include <string>
#include <string_view>

#include <remote/error.hpp>

#include "config/yaml_reader.hpp"

namespace remote::config {

// "FILE:LINE:COLUMN: reason", wrong configuration.
Error config_error(const std::string& file, Mark mark, const std::string& reason,
                   const std::string& hint = {});

// A text of the file fit for a message: control characters made visible, at most 60 characters.
std::string printable(std::string_view text);

}  // namespace remote::config
