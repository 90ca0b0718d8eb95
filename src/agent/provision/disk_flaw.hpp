#pragma once

#include <string>

#include "agent/host/path.hpp"
#include "agent/provision/failure.hpp"

namespace remote::agent {

// The error for a program that failed to write to `folder`. If the folder does not support files, links or
// modes, that becomes the reason, and the hint is dropped.
ProvisionError explain_failure(const Path& folder, const std::string& reason, const std::string& hint = {});

}  // namespace remote::agent
