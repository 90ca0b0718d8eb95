#include "servers/match.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "servers/action.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_names = 1000;

bool fits_part(const std::string& pattern, const std::string& part) {
  const bool hidden = part.starts_with('.') && !pattern.starts_with('.');
  return part != "." && part != ".." && !hidden && glob_match(pattern, part);
}

}  // namespace

PathPattern::PathPattern(const std::string& path) : parts_(split(path, '/')) {}

std::string PathPattern::text() const {
  return join(parts_, "/");
}

bool PathPattern::fits(const std::string& name) const {
  return std::ranges::equal(parts_, split(name, '/'), fits_part);
}

bool PathPattern::fits_within(const std::string& name) const {
  std::vector<std::string> names = split(name, '/');
  names.resize(std::min(names.size(), parts_.size()));
  return std::ranges::equal(parts_, names, fits_part);
}

void MatchAnswer::take(AnswerLine& line) {
  if (line.kind() != "pull" || line.word() != "name") {
    line.refuse_kind();
  }
  const std::string_view text = line.rest();
  if (!text.starts_with('|') || !pattern.fits(std::string(text.substr(1)))) {
    throw Error("cannot look for " + pattern.text(), "the server names a file that does not fit")
        .mended_by(Remedy::tell_more);
  }
  if (names.size() == most_names) {
    throw Error("cannot look for " + pattern.text(), fmt::format("more than {} files fit", most_names),
                "name their folder");
  }
  names.emplace_back(text.substr(1));
}

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> match(ssh::Connection& connection, const std::string& folder,
                               const std::string& pattern, const Cancel& cancel) {
  const std::string above = pattern.starts_with('/') ? "/" : pattern.starts_with("~/") ? "~/" : "";
  const std::string from = above.empty() ? folder : above == "/" ? "/" : "~";
  const std::string relative = pattern.substr(above.size());
  Action<MatchAnswer> action;
  action.what = "look for files";
  action.script.set_path("folder", from).add("actions/pull_match.sh").call("pull_match", {relative});
  action.timeout = std::chrono::seconds(30);
  MatchAnswer answer = run_action(connection, action, cancel, MatchAnswer{PathPattern(relative)});
  for (std::string& name : answer.names) {
    name.insert(0, above);
  }
  std::ranges::sort(answer.names);
  return std::move(answer.names);
}

}  // namespace remote::servers
