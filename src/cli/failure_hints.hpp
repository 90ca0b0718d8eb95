#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remote::cli {

// The output of a program that fails for a reason with a known fix.
struct FailureHint {
  std::array<std::string_view, 2> marks;  // both must be in one line, in this order; the second may be ""
  std::string_view hint;
};

std::span<const FailureHint> failure_hints();

// Facts about the failed launch.
struct FailureFacts {
  bool has_one_rank_each = false;  // one rank on each server
  std::string server{};
  std::string shm{};  // size of /dev/shm there, if it is small; "": unknown
};

// The hint for the last of these lines that matches one; "" if none does. The lines are untrusted text.
std::string hint_for_failure(const std::vector<std::string>& lines, const FailureFacts& facts = {});

// The hint for the end of a command's output; "" if there is none.
std::string hint_for_output(std::string_view output);

}  // namespace remote::cli
