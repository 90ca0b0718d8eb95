#pragma once

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/uninstall.hpp"

namespace remote::agent {

// Answers the request and ends this process, unless it is a dry run. This program continues from memory, as
// `remote-agent uninstall STREAM PROJECT JOBS_FOLDER AGENT_FOLDER SHARED_FOLDER...`, because NFS keeps the
// file of a running program, and thus its folder. If that is not possible, it answers from this process.
void answer_uninstall(const Host& host, const wire::UninstallRequest& request, Stream& stream);
// Writes the answer to stdout, in frames of this stream.
int run_uninstall(int count, char** words);

// Removes everything that remote has installed, unless this user has running jobs.
wire::UninstallReply uninstall(const Host& host, const wire::UninstallRequest& request);

}  // namespace remote::agent
