#pragma once

#include <string>

#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "wire/trees.hpp"

// The tree on a server that a frozen launch runs in (docs/frozen.md): a copy of the files that were sent.

namespace remote::jobs {

// Creates a tree, or completes an existing one. `list` is ProjectState::text(), and `digest` its SHA-256. If
// `list` is "", uses the list that the server has kept. Throws Error and Interrupted.
wire::MakeTreeReply make_tree(const AnyAgent& agent, const RemoteFolder& folder, const std::string& digest,
                              const std::string& list);

}  // namespace remote::jobs
