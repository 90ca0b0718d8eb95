#pragma once

#include <string>
#include <string_view>

namespace remote::servers {

// A hint after the agent could not write to the project's folder on the server, based on errno messages in
// its reason; "" if there are none.
std::string disk_hint(std::string_view reason);
// A hint after another program failed. Its output may contain those messages for other reasons.
std::string output_disk_hint(std::string_view output);

}  // namespace remote::servers
