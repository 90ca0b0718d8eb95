#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace remote::ui {

// How many cells of a terminal a text takes: CJK and emoji take two, combining marks none. Whatever the
// locale says: the text is UTF-8. Control characters count nothing (see base/visible.hpp).
std::size_t display_width(std::string_view text);

// The text, or as much of its beginning as fits into `width` cells with "…" behind it.
std::string shorten(std::string_view text, std::size_t width);

}  // namespace remote::ui
