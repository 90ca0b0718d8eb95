#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/host/path.hpp"

namespace remote::agent {

// Measures how much ranks have written, without the lines that torch logs when it dumps its flight recorder:
// `job-why` and the evidence of a hang request dumps, even from a rank that hangs.
class OutputSizes {
 public:
  // nullopt if the file is missing.
  std::optional<std::uint64_t> measure(const Path& file);

 private:
  struct Known {
    std::uint64_t size = 0;
    std::uint64_t of_dumps = 0;
  };
  std::map<std::string, Known> known_;
};

}  // namespace remote::agent
