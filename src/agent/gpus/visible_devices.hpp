#pragma once

#include <vector>

#include <remote/gpu.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// The variables that hide GPUs from the programs of this host.
std::vector<VisibleDevices> read_visible_devices(const Host& host);

}  // namespace remote::agent
