#pragma once

#include <vector>

#include <remote/facts.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// The ports of InfiniBand and RoCE devices. Any thread.
std::vector<InfinibandPort> read_infiniband(const Host& host);

}  // namespace remote::agent
