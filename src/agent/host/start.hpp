#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

struct StartRequest {
  std::vector<std::string> argv;  // argv[0] is a path
  Path folder;
  Path input = "/dev/null";
  int input_descriptor = -1;  // an open descriptor that replaces `input`
};

// Starts a program that outlives the agent, in its own session and without the agent's descriptors. Its
// output is discarded. Returns false if no process can be started.
bool start_apart(const Host& host, const StartRequest& request);

}  // namespace remote::agent
