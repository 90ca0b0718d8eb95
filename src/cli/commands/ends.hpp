#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/history.hpp>

#include "cli/context.hpp"

namespace remote::cli {

// Copies the files that the launch of this job wrote to results/KEY, and reports that. Returns the exit code.
int pull_at_end(Context& context, const Job& job);

// Project::history(), with a notice while waiting for servers.
History asked_history(Context& context);

// --notify CMD and --bell: local notification of a user who waits.
class AtEnd {
 public:
  void add(CLI::App& command);
  // Throws Error (usage) if it is requested but the command does not wait. `name`: of the subcommand.
  void check(const std::string& name, bool waits) const;
  // Call when the wait is over. `jobs`: their current state. If the command fails, prints a warning.
  void tell(Context& context, const std::vector<Job>& jobs, bool succeeded) const;

 private:
  std::optional<std::string> command_;
  bool bell_ = false;
};

}  // namespace remote::cli
