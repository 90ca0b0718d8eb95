#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/peers.hpp"

namespace remote::agent {

// Copies the project from another server with rsync and ssh. `names`: the requested files, each terminated by
// NUL. Throws std::runtime_error if rsync cannot be started.
void answer_pull_project(const Host& host, const wire::PullProjectRequest& request, const std::string& names,
                         Stream& stream);

// `digests`: "SHA256 NAME" for each file, terminated by NUL. A link or a missing file counts as different.
wire::CompareFilesReply compare_with_digests(const Host& host, const wire::CompareFilesRequest& request,
                                             const std::string& digests, const Stream& stream);

}  // namespace remote::agent
