#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

// Text from outside (a server, a job, a file) made safe for a terminal, where it could move the cursor,
// change the window's title or reverse the direction of a line. Control characters become "\x1b" and the
// like, characters that change the direction "\u202e", and bytes that are not UTF-8 "\xff". After `longest`
// characters of the text the rest becomes "…".

namespace remote {

// Fit for one line: newlines and tabs become "\n" and "\t".
std::string visible_line(std::string_view text,
                         std::size_t longest = std::numeric_limits<std::size_t>::max());
// Newlines and tabs stay.
std::string visible_text(std::string_view text,
                         std::size_t longest = std::numeric_limits<std::size_t>::max());

}  // namespace remote
