#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remote::cli {

// What a program prints when it fails for a reason that has a known remedy.
struct FailureHint {
  std::array<std::string_view, 2> marks;  // both in one line, in this order; the second may be ""
  std::string_view hint;
};

std::span<const FailureHint> failure_hints();

// Known about the launch that failed.
struct FailureFacts {
  bool has_one_rank_each = false;  // on each server
  std::string server{};
  std::string shm{};  // the size of /dev/shm there, if that is small; "": unknown
};

// The remedy for the last of these lines that has one; "" for none. The lines are foreign text.
std::string hint_for_failure(const std::vector<std::string>& lines, const FailureFacts& facts = {});

// The remedy for the end of a command's output; "" for none.
std::string hint_for_output(std::string_view output);

}  // namespace remote::cli
