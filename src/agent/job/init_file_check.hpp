#pragma once

#include "agent/host/host.hpp"
#include "wire/init_file.hpp"

namespace remote::agent {

// Creates, checks or removes the shared folder of a launch that has not started. torch opens, writes and
// locks a file there, so the check does the same.
wire::InitFileReply check_init_file(const Host& host, const wire::InitFileRequest& request);

}  // namespace remote::agent
