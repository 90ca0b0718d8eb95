#pragma once

#include <string>
#include <string_view>

namespace remote::servers {

// What to try after a program could not write to the project's folder on the server, by errno's texts in its
// message; "" if it has none of them.
std::string disk_hint(std::string_view message);

}  // namespace remote::servers
