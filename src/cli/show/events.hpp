#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace remote::cli {

// An event in words, on stderr. The progress of prepare is no matter of this: see show/prepare.hpp.
void show_event(Context& context, const Event& event);

// A title and below it the first of the names, which are foreign text; nothing for no names.
void show_names(Context& context, const std::string& title, const std::vector<std::string>& names);

}  // namespace remote::cli
