#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/context.hpp"

// Texts for prepare that need some logic.

namespace remote::cli {

// The current step of pip or apt-get, from a line of its output: "downloading torch 2.6.0 (766.7 MB)". Other
// lines are returned unchanged.
std::string package_line(const std::string& line);

// "a, b and c"
std::string enumerated(std::vector<std::string> names);

// The step's name, as in its command: "rsync".
std::string step_name(PrepareStep step);

// "3.2 GB"
std::string size_text(std::uint64_t bytes);

// Detects equal failures of several servers.
class SameFailures {
 public:
  // The server that failed in the same way before; empty: none.
  std::string seen_on(const std::string& server, const ServerFailed& failure);

 private:
  std::map<std::string, std::string> first_;
};

}  // namespace remote::cli
