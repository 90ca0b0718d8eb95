#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/backend.hpp"

// What protocol.cpp and protocol_parse.cpp share with actions that have files of their own (clean.cpp,
// stacks.cpp).

namespace remote::jobs {

// What an action's script begins with: $project and $jobs, lib.sh, the action's functions, and of the
// backends these parts.
std::string prelude(const RemoteFolder& folder, std::string_view action, const std::vector<Backend>& known,
                    std::initializer_list<std::string_view> parts);

// A text as one word of a line: its odd bytes as %XX; "-" when it is empty.
std::string percent_encode(std::string_view text);

// Hands every answer line to `take`: its first word, and the rest. False from it means that the line is not
// understood, which is an Error; so is an answer without its closing line.
void read_lines(std::string_view out, const std::function<bool(std::string_view, std::string_view)>& take);

}  // namespace remote::jobs
