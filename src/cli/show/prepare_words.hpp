#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/context.hpp"

// The words of prepare and its steps that need some thought.

namespace remote::cli {

// What pip is at, by a line that it prints: "downloading torch 2.6.0 (766.7 MB)". Other lines as they are.
std::string package_line(const std::string& line);

// "a, b and c"
std::string enumerated(std::vector<std::string> names);

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

// Shows what to try, once for the servers that share it.
void show_hints(Context& context, const std::vector<PrepareResult>& results);

// Before much that the servers lack goes to them: shows what is large, and asks on a terminal unless `yes`.
// Throws Error where the answer is no.
void confirm_size(Context& context, const FirstSync& pending, bool yes);

// "skipped by exclude.txt: data/ (1.2 GB), model.pt (80.0 MB)"; "" for nothing that anybody may miss there.
std::string skipped_line(const std::filesystem::path& project, const Cancel& cancel);

}  // namespace remote::cli
