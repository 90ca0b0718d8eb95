#pragma once

#include <string>
#include <string_view>

namespace remote::servers {

// What to try after the agent could not write to the project's folder on the server, by errno's texts in its
// reason; "" if it has none of them.
std::string disk_hint(std::string_view reason);
// The same after a program failed, whose output may have those texts for other causes.
std::string output_disk_hint(std::string_view output);

}  // namespace remote::servers
