#pragma once

#include <string>
#include <string_view>

namespace remote::servers {

// What to try after pip, uv or conda failed, by what it wrote to stderr; empty: nothing is known.
std::string pip_hint(std::string_view err);

}  // namespace remote::servers
