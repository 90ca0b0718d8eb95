#include "base/exec_result.hpp"

#include "base/strings.hpp"

namespace remote {

std::string ExecResult::describe() const {
  const std::string said = last_lines(trim(err), 3);
  return status.describe() + (said.empty() ? "" : ": " + said);
}

}  // namespace remote
