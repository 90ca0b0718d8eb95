#pragma once

#include <string>
#include <string_view>

namespace remote::servers {

// What to try after the agent could not write to the project's folder on the server, by errno's texts in its
// reason; "" if it has none of them.
std::string disk_hint(std::string_view reason);
// What to try after another program failed: its output may contain those texts for other reasons.
std::string output_disk_hint(std::string_view output);

}  // namespace remote::servers
