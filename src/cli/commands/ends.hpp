#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/history.hpp>

#include "cli/context.hpp"

namespace remote::cli {

// Copies what the launch of this job wrote to results/KEY, and says so. Returns the exit code.
int pull_at_end(Context& context, const Job& job);

// Project::history(); says what it waits for.
History asked_history(Context& context);

// --notify CMD and --bell: news for who waits here.
class AtEnd {
 public:
  void add(CLI::App& command);
  // Throws Error (usage) where it is asked for and nobody waits. `name`: the subcommand's.
  void check(const std::string& name, bool waits) const;
  // What was waited for has ended. `jobs`: as they are now. A command that fails is a warning.
  void tell(Context& context, const std::vector<Job>& jobs, bool succeeded) const;

 private:
  std::optional<std::string> command_;
  bool bell_ = false;
};

}  // namespace remote::cli
