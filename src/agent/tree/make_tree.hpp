#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "wire/trees.hpp"

namespace remote::agent {

// Finishes even if the client disconnects.
wire::MakeTreeReply make_tree(const Host& host, const wire::MakeTreeRequest& request,
                              const std::string& list);

}  // namespace remote::agent
