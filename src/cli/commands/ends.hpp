#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/project.hpp>

#include "cli/context.hpp"

namespace remote::cli {

// Copies what the launch wrote to results/KEY, and says so; errors, too.
Results pull_results(Context& context, const std::string& launch);

// --notify CMD and --bell: news for who waits here.
class AtEnd {
 public:
  void add(CLI::App& command);
  bool asked() const { return bell_ || command_.has_value(); }
  // What was waited for has ended. `jobs`: as they are now. A command that fails is a warning.
  void tell(Context& context, const std::vector<Job>& jobs, bool succeeded) const;

 private:
  std::optional<std::string> command_;
  bool bell_ = false;
};

}  // namespace remote::cli
