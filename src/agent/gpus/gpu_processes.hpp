#pragma once

#include <vector>

#include <remote/gpu.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// Adds the owner, age and job of each process, and its name if the vendor's program does not know it.
void identify_processes(const Host& host, std::vector<Gpu>& gpus);

}  // namespace remote::agent
