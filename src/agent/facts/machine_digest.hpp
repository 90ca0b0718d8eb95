#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// Returns a digest that identifies the machine: the same for all users and projects, and after a reboot. It
// does not reveal the machine id. "0": unknown.
std::string read_machine_digest(const Host& host);

}  // namespace remote::agent
