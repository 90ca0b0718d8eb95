#include "base/failure_lines.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/strings.hpp"

namespace remote {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool contains(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

bool is_traceback(std::string_view line) {
  return contains(line, "Traceback (most recent call last)");
}

bool is_abort(std::string_view line) {
  return contains(line, "terminate called after throwing an instance of") ||
         contains(line, "terminate called recursively");
}

// Matches "frame #12: c10d::… + 0x9d (0x7f3a in /…/libc10.so)".
bool is_stack_frame(std::string_view line) {
  constexpr std::string_view begin = "frame #";
  return line.starts_with(begin) && line.size() > begin.size() && is_digit(line[begin.size()]);
}

bool is_aftermath(std::string_view line) {
  const std::string_view text = trim(without_rank_label(line));
  constexpr std::array aftermath{"<omitting python frames>",
                                 "destroy_process_group() was not called before program exit",
                                 "(most recent call first):"};
  return text.empty() || is_stack_frame(text) ||
         std::ranges::any_of(aftermath, [&](const char* part) { return contains(text, part); });
}

// Matches ".../Indexing.cu:1553: indexSelectLargeIndex: block: [0,0,0], thread: [1,0,0] Assertion `…`
// failed."
bool is_kernel_assertion(std::string_view line) {
  return contains(line, ": block: [") && contains(line, "thread: [") && contains(line, " Assertion `");
}

// Finds the line of an abort that repeats the message of the preceding Python traceback; end() if there is
// none.
std::vector<std::string>::const_iterator find_repetition(const std::vector<std::string>& lines) {
  constexpr std::string_view mark = "what():";
  const auto traceback = std::ranges::find_if(lines, is_traceback);
  const auto abort = std::find_if(traceback, lines.end(), is_abort);
  if (abort == lines.end() || std::next(abort) == lines.end()) {
    return lines.end();
  }
  const std::string_view what = *std::next(abort);
  const std::size_t at = what.find(mark);
  const std::string_view text = at == std::string_view::npos ? "" : trim(what.substr(at + mark.size()));
  const bool repeats = !text.empty() && std::any_of(traceback, abort, [&](const std::string& line) {
    return contains(line, text);
  });
  return repeats ? abort : lines.end();
}

}  // namespace

std::string_view without_rank_label(std::string_view line) {
  constexpr std::string_view begin = "[rank";
  if (!line.starts_with(begin)) {
    return line;
  }
  const std::size_t end = std::min(line.find_first_not_of("0123456789", begin.size()), line.size());
  return end > begin.size() && line.substr(end).starts_with("]:") ? line.substr(end + 2) : line;
}

bool is_torch_log(std::string_view line) {
  const std::string_view text = without_rank_label(line);
  // "[W1126 16:05:40.…", or before torch 2.5 "[W File.cpp:1575]".
  constexpr std::size_t shortest = 4;
  if (text.size() < shortest || text[0] != '[' || !contains("IWEF", text.substr(1, 1))) {
    return false;
  }
  return is_digit(text[2]) || (text[2] == ' ' && contains(text.substr(0, text.find(']')), ".cpp:"));
}

bool is_nccl_log(std::string_view line) {
  return contains(line, "] NCCL INFO ") || contains(line, "] NCCL WARN ");
}

bool is_python_warning(std::string_view line) {
  const std::string_view text = without_rank_label(line);
  if (trim(text).starts_with("warnings.warn(")) {
    return true;
  }
  const std::size_t end = text.find("Warning: ");
  const std::size_t category = text.substr(0, end).rfind(": ");
  if (end == std::string_view::npos || category == std::string_view::npos ||
      text.substr(category + 2, end - category - 2).find(' ') != std::string_view::npos) {
    return false;
  }
  const std::string_view place = text.substr(0, category);
  const std::size_t colon = place.rfind(':');
  return colon != std::string_view::npos && colon + 1 < place.size() &&
         place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

bool is_cuda_error(std::string_view line) {
  return contains(line, "CUDA out of memory. ") || contains(line, "CUDA_LAUNCH_BLOCKING=1") ||
         is_kernel_assertion(line) || is_stack_frame(line);
}

std::vector<std::string> find_failure_lines(const std::vector<std::string>& lines, std::size_t count) {
  const auto end = find_repetition(lines);
  std::vector<std::string> found;
  const std::string* assertion = nullptr;
  for (auto line = lines.begin(); line != end; ++line) {
    if (is_kernel_assertion(*line)) {
      assertion = assertion == nullptr ? &*line : assertion;  // there is one line for each thread
    } else if (!is_aftermath(*line)) {
      found.push_back(*line);
    }
  }
  if (found.empty() && assertion == nullptr) {
    found = lines;
  }
  const std::size_t most = assertion == nullptr || count == 0 ? count : count - 1;
  found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(std::min(most, found.size())));
  if (assertion != nullptr && count > 0) {
    found.insert(found.begin(), *assertion);
  }
  return found;
}

}  // namespace remote
