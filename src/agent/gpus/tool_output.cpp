#include "agent/gpus/tool_output.hpp"

#include <algorithm>
#include <array>

#include "base/decimal.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

// In the order of the bits in nvml.h (nvmlClocksEventReasons).
constexpr std::array limit_bits{ClockLimit::idle,
                                ClockLimit::application_setting,
                                ClockLimit::power_cap,
                                ClockLimit::hardware_slowdown,
                                ClockLimit::sync_boost,
                                ClockLimit::software_thermal,
                                ClockLimit::hardware_thermal,
                                ClockLimit::hardware_power_brake,
                                ClockLimit::display_setting};

}  // namespace

ToolOutput to_output(std::string_view text, int code) {
  ToolOutput output{.code = code};
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  output.lines = split(text, '\n');
  for (std::string& line : output.lines) {
    line.erase(line.find_last_not_of('\r') + 1);
  }
  return output;
}

std::string join_lines(const ToolOutput& output) {
  return join(output.lines, "\n");
}

std::string summarize(const ToolOutput& output) {
  std::string text;
  for (const std::string& line : output.lines) {
    const std::string_view next = trim(line);
    if (next.empty()) {
      continue;
    }
    if (!text.empty()) {
      text += std::string_view(".:,;!?").find(text.back()) == std::string_view::npos ? "; " : " ";
    }
    text += next;
  }
  return text;
}

GpuToolState find_state(const ToolOutput& output) {
  const std::string text = join_lines(output);
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  // Other codes are in nvidia-smi's manual ("Return value"). 124 and 137: it timed out, or had to be killed
  // because it did not react.
  if (output.code == 124 || output.code == 137) {
    return GpuToolState::hangs;
  }
  if (says("No devices were found")) {
    return GpuToolState::no_devices;
  }
  if (says("Failed to initialize NVML: Unknown Error")) {
    return GpuToolState::no_access;
  }
  if (output.code == 9 || says("couldn't communicate with the NVIDIA driver")) {
    return GpuToolState::no_driver;
  }
  if (says("Driver/library version mismatch")) {
    return GpuToolState::version_mismatch;
  }
  if (output.code == 15 || says("Unable to determine the device handle") || says("fallen off the bus")) {
    return GpuToolState::lost_device;
  }
  if (output.code == 0) {
    return GpuToolState::answered;
  }
  if (output.code == 4 || says("Insufficient Permissions")) {
    return GpuToolState::no_permission;
  }
  return GpuToolState::failed;
}

bool is_word(std::string_view text, std::string_view marks) {
  return !text.empty() && text.size() <= 80 && std::ranges::all_of(text, [&](char c) {
    return is_alphanumeric(c) || marks.find(c) != std::string_view::npos;
  });
}

std::optional<double> parse_between(std::string_view text, double low, double high) {
  const std::optional<double> value = parse_decimal(text);
  if (!value || !(*value >= low && *value <= high)) {
    return std::nullopt;
  }
  return value;
}

std::vector<ClockLimit> decode_clock_limits(std::uint64_t mask) {
  std::vector<ClockLimit> limits;
  for (std::size_t bit = 0; bit < limit_bits.size(); ++bit) {
    if ((mask >> bit & 1U) != 0) {
      limits.push_back(limit_bits[bit]);
    }
  }
  if (mask >> limit_bits.size() != 0) {
    limits.push_back(ClockLimit::other);
  }
  return limits;
}

}  // namespace remote::agent
