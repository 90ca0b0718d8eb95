#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <remote/gpu.hpp>

// The output of a vendor's program, and its interpretation.

namespace remote::agent {

struct ToolOutput {
  std::vector<std::string> lines{};  // stdout and stderr, without newlines
  int code = 0;                      // the exit code; 124: no answer in time

  friend bool operator==(const ToolOutput&, const ToolOutput&) = default;
};

// Thrown if an output differs from the program's documentation. what() describes the difference.
struct BadAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
// More than any server has.
inline constexpr std::size_t most_gpus = 1024;

ToolOutput to_output(std::string_view text, int code = 0);
// The lines, with newlines between them.
std::string join_lines(const ToolOutput& output);
// The lines as one sentence for the user.
std::string summarize(const ToolOutput& output);

// Interprets the exit code and the message of a vendor's program.
GpuToolState find_state(const ToolOutput& output);

// Whether the text consists of 1 to 80 ASCII letters, digits and these marks.
bool is_word(std::string_view text, std::string_view marks);
// A decimal number in this range; nullopt for anything else.
std::optional<double> parse_between(std::string_view text, double low, double high);
// Decodes the bits of nvidia-smi's clocks_event_reasons.active.
std::vector<ClockLimit> decode_clock_limits(std::uint64_t mask);

}  // namespace remote::agent
