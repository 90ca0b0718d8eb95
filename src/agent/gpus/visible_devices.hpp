#pragma once

#include <vector>

#include <remote/gpu.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// The variables that hide GPUs from programs on this host.
std::vector<VisibleDevices> read_visible_devices(const Host& host);

}  // namespace remote::agent
