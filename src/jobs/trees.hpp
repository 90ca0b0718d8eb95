#pragma once

#include <string>

#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "wire/trees.hpp"

// The tree that a frozen launch runs in on a server (docs/frozen.md): a copy of the files that were sent.

namespace remote::jobs {

// Makes a tree, or completes an existing one. `list` is ProjectState::text(), and `digest` its SHA-256. If it
// is "", the list that the server has kept is used. Throws Error and Interrupted.
wire::MakeTreeReply make_tree(const AnyAgent& agent, const RemoteFolder& folder, const std::string& digest,
                              const std::string& list);

}  // namespace remote::jobs
