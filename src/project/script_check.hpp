#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/events.hpp>

#include "project/core.hpp"

namespace remote::project {

// Throws Error (usage) if the command runs a script that is missing here and on one of these servers, with
// the name that was probably meant; or a script that a server lacks because it was not sent. `env` may set
// REMOTE_WORKDIR; `image`: LaunchRequest::image; `changed`: differences on the servers.
void check_script(Core& core, const std::vector<config::Server>& servers, const std::string& command,
                  const Env& env, const std::optional<std::string>& image,
                  const std::vector<CodeChanged>& changed);

}  // namespace remote::project
