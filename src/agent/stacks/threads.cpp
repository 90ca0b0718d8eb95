#include "agent/stacks/threads.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/stacks.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The threads of a dump. Their texts are limited, so that they fit into one message even as JSON.
class ThreadList {
 public:
  void add_thread(std::string_view name) { threads_.push_back({make_line(name), {}}); }
  void add_frame(std::string_view frame) {
    if (!threads_.empty() && threads_.back().frames.size() < wire::max_stack_line && left_ > 0) {
      threads_.back().frames.push_back(make_line(frame));
    }
  }
  bool is_full() const { return threads_.size() >= wire::max_stack_line || left_ == 0; }

  std::vector<ThreadStack> threads_{};

 private:
  std::string make_line(std::string_view text) {
    std::string line = wire::to_line(text, std::min(left_, wire::max_stack_line));
    left_ -= line.size();
    return line;
  }

  std::size_t left_ = std::size_t{256} << 10U;
};

// Converts "  File "/a/train.py", line 12 in forward" to "forward (/a/train.py:12)".
std::optional<std::string> convert_frame(std::string_view line) {
  constexpr std::string_view begin = "  File \"";
  constexpr std::string_view middle = "\", line ";
  if (!line.starts_with(begin)) {
    return std::nullopt;
  }
  const std::size_t at = line.rfind(middle);
  const std::size_t in = at == std::string_view::npos ? at : line.find(" in ", at);
  if (in == std::string_view::npos || at < begin.size()) {
    return std::nullopt;
  }
  const std::size_t number = at + middle.size();
  return text::format("{} ({}:{})", line.substr(in + 4), line.substr(begin.size(), at - begin.size()),
                      line.substr(number, in - number));
}

}  // namespace

std::vector<ThreadStack> parse_py_spy(std::string_view dump, int pid) {
  ThreadList list;
  std::ptrdiff_t main = 0;
  for (const std::string& line : split(dump, '\n')) {
    if (list.is_full()) {
      break;
    }
    if (line.starts_with("Thread ")) {
      if (line.find("\"MainThread\"") != std::string::npos ||
          line.starts_with(text::format("Thread {} ", pid))) {
        main = static_cast<std::ptrdiff_t>(list.threads_.size());
      }
      list.add_thread(line);
    } else if (line.starts_with("    ")) {
      list.add_frame(trim(line));
    }
  }
  std::vector<ThreadStack>& threads = list.threads_;
  if (!threads.empty()) {
    std::rotate(threads.begin(), threads.begin() + main, threads.begin() + main + 1);
  }
  return std::move(threads);
}

std::vector<ThreadStack> parse_faulthandler(std::string_view dump) {
  constexpr std::string_view head = " (most recent call first):";
  ThreadList list;
  for (const std::string& line : split(dump, '\n')) {
    if (list.is_full()) {
      break;
    }
    if (const std::size_t end = line.find(head); end != std::string::npos) {
      list.add_thread(std::string_view(line).substr(0, end));
    } else if (const auto frame = convert_frame(line)) {
      list.add_frame(*frame);
    } else if (!trim(line).empty()) {
      list.add_frame(trim(line));  // "...", if the stack is truncated, or "<no Python frame>"
    }
  }
  std::vector<ThreadStack>& threads = list.threads_;
  // faulthandler prints the newest thread first and the main thread last.
  std::ranges::reverse(threads);
  if (!threads.empty()) {
    threads.front().name = "main thread";
  }
  return std::move(threads);
}

}  // namespace remote::agent
