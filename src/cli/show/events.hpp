#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

// Events in words.

namespace remote::cli {

// An event in words, on stderr. The progress of prepare has none: see PrepareScreen.
void show_event(Context& context, const Event& event);

// A title and below it the first of the names, which are foreign text; nothing for no names.
void show_names(Context& context, const std::string& title, const std::vector<std::string>& names);

}  // namespace remote::cli
