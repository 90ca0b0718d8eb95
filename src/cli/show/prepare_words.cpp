#include "cli/show/prepare_words.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::cli {
namespace {

// "torch-2.6.0-cp311-cp311-linux_x86_64.whl (766.7 MB)" as "torch 2.6.0 (766.7 MB)"
std::string archive(std::string_view text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  std::string_view file = text.substr(0, blank);
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  const std::string_view size = text.substr(blank);
  std::string name(file);
  if (file.ends_with(".whl")) {
    const std::vector<std::string> parts = split(std::string(file), '-');
    if (parts.size() > 2) {
      name = parts[0] + " " + parts[1];
    }
  } else if (const std::size_t end = file.rfind(".tar."); end != std::string_view::npos) {
    name = file.substr(0, end);
  }
  return name + std::string(size);
}

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find(' ')));
}

std::string installing(std::string_view names) {
  const std::size_t count = static_cast<std::size_t>(std::ranges::count(names, ',')) + 1;
  return fmt::format("installing {}: {}", counted(count, "package"), names);
}

std::string building(std::string_view text) {
  return "building " + first_word(text);
}

// "Waiting for cache lock: Could not get lock FILE. It is held by process 1729 (python3)..." with the process
// first, because the end of a long line is cut off.
std::string lock_wait(std::string_view text) {
  constexpr std::string_view held = "held by ";
  const std::size_t at = text.find(held);
  const std::string_view holder = text.substr(at == text.npos ? text.size() : at + held.size());
  const std::size_t end = std::min(holder.find_last_not_of('.'), holder.size() - 1);
  return holder.empty() ? "waiting until another process has installed packages"
                        : fmt::format("waiting for {}, which installs packages", holder.substr(0, end + 1));
}

// The distinctive part of a failure's output: pip's errors, without warnings, because these may contain the
// addresses of objects.
std::string essence(const std::string& lines) {
  std::string errors;
  for (const std::string& line : split(lines, '\n')) {
    if (lower_case(line.substr(0, 6)) == "error:") {
      errors += line + "\n";
    }
  }
  return errors.empty() ? lines : errors;
}

}  // namespace

std::string package_line(const std::string& line) {
  const std::string_view text = trim(line);
  const auto is = [](const char* verb, auto what) {
    return [verb, what](std::string_view rest) { return std::string(verb) + what(rest); };
  };
  const std::array<std::pair<std::string_view, std::function<std::string(std::string_view)>>, 8> known{{
      {"Collecting ", is("collecting ", first_word)},
      {"Downloading ", is("downloading ", archive)},
      {"Using cached ", is("from the cache: ", archive)},
      {"Processing ", is("reading ", archive)},
      {"Requirement already satisfied: ", is("there already: ", first_word)},
      {"Building wheel for ", building},
      {"Installing collected packages: ", installing},
      {"Waiting for cache lock: ", lock_wait},
  }};
  for (const auto& [begin, words] : known) {
    if (text.starts_with(begin) && text.size() > begin.size()) {
      return words(text.substr(begin.size()));
    }
  }
  return line;
}

std::string enumerated(std::vector<std::string> names) {
  if (names.empty()) {
    return {};
  }
  const std::string last = std::move(names.back());
  names.pop_back();
  return names.empty() ? last : join(names, ", ") + " and " + last;
}

std::string step_name(PrepareStep step) {
  constexpr std::array names{"setup", "rsync", "packages", "shared"};  // in the order of the steps
  return names.at(static_cast<std::size_t>(step));
}

std::string size_text(std::uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  return bytes >= 1'000'000'000 ? fmt::format("{:.1f} GB", number / 1e9)
         : bytes >= 1'000'000   ? fmt::format("{:.1f} MB", number / 1e6)
         : bytes >= 1'000       ? fmt::format("{:.1f} kB", number / 1e3)
                                : counted(bytes, "byte");
}

std::string SameFailures::seen_on(const std::string& server, const ServerFailed& failure) {
  if (failure.last_lines.empty()) {
    return {};  // a single line is shown for each server
  }
  const std::string what = failure.error.what_failed() + "\n" + failure.error.reason() + "\n";
  const auto [found, fresh] = first_.emplace(what + essence(failure.last_lines), server);
  return fresh ? std::string() : found->second;
}

}  // namespace remote::cli
