#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace remote::ui {

// How many cells of a terminal a text takes: CJK and emoji take two, combining marks none. Whatever the
// locale says: the text is UTF-8. Control characters count nothing (see one_line).
std::size_t display_width(std::string_view text);

// The text, or as much of its beginning as fits into `width` cells with "…" behind it.
std::string shorten(std::string_view text, std::size_t width);

// The text fit for one line of a terminal: control characters as "\n", "\t", "\x1b", a byte that is not UTF-8
// as "\xff". Text from outside could move the cursor or change the title otherwise.
std::string one_line(std::string_view text);

}  // namespace remote::ui
