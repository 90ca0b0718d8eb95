#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"
#include "config/config.hpp"

namespace remote::cli {

// Compares the contents of the project here and on each server, side by side, and names on stderr what
// differs. True when nothing does. Throws Error where a server could not be asked.
bool project_is_the_same(Context& context, const std::vector<config::Server>& servers);

// "TITLE" and the first names below it, on stderr; nothing when there are none.
void show_names(Context& context, const std::string& title, const std::vector<std::string>& names);

}  // namespace remote::cli
