#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <remote/forward.hpp>

#include "project/core.hpp"
#include "servers/forwarding.hpp"

namespace remote::project {

// Callbacks that run on the threads that serve the ports.
struct ForwardNews {
  std::function<void(std::size_t, const Listening&)> listening;
  std::function<void(std::size_t, const Error&)> refused;
  std::function<void(const Job&)> ended;
};

// Forwards these ports, whose servers are named, until the job has ended. Throws Interrupted and Error.
void forward(Core& core, const std::vector<ForwardedPort>& ports, const std::optional<Job>& job,
             const ForwardNews& news);

}  // namespace remote::project
