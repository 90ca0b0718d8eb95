#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

// Events as text.

namespace remote::cli {

// Prints an event on stderr. Ignores the progress of prepare: see PrepareScreen.
void show_event(Context& context, const Event& event);

// A title, followed by the first of the names, which are untrusted text. Prints nothing without names.
void show_names(Context& context, const std::string& title, const std::vector<std::string>& names);

}  // namespace remote::cli
