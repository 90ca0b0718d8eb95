#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// Returns a digest that identifies the machine: the same for all users and projects, and after a reboot. It
// does not reveal the machine id. "0": unknown.
std::string read_machine_digest(const Host& host);

// Returns a digest of the machine id (/etc/machine-id) alone, which machines made from one image may share.
// "": unknown, or no network card, as in a container, where the id is always that of the image.
std::string read_image_digest(const Host& host);

}  // namespace remote::agent
