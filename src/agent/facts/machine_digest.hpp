#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// Returns a digest of the machine: equal for all users and projects, also after a reboot. It does not reveal
// the id. "0": unknown.
std::string read_machine_digest(const Host& host);

}  // namespace remote::agent
