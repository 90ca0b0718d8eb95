#pragma once

#include <string_view>

namespace remote::scripts {

// The text of src/server/NAME, compiled into the binary (cmake/embed.cmake writes the definition).
// Throws std::logic_error for a name that is not there: that is a bug of the caller, never user input.
std::string_view text(std::string_view name);

}  // namespace remote::scripts
