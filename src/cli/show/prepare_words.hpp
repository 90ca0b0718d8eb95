#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/context.hpp"

// The words of prepare that need some thought.

namespace remote::cli {

// What pip is at, by a line that it prints: "downloading torch 2.6.0 (766.7 MB)". Other lines as they are.
std::string package_line(const std::string& line);

// "a, b and c"
std::string enumerated(std::vector<std::string> names);

// The step's name, as its command has it: "rsync".
std::string step_name(PrepareStep step);

// "3.2 GB"
std::string size_text(std::uint64_t bytes);

// Tells failures that several servers share.
class SameFailures {
 public:
  // The server that failed in the same way before; empty: none did.
  std::string seen_on(const std::string& server, const ServerFailed& failure);

 private:
  std::map<std::string, std::string> first_;
};

}  // namespace remote::cli
