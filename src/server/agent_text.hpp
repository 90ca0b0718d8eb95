#pragma once

#include <string_view>

namespace remote::server {

// The text of bootstrap.sh, run_agent.py, activate.sh or prologue.sh, embedded by the build. Throws
// std::logic_error for other names.
std::string_view agent_text(std::string_view name);

}  // namespace remote::server
