#include "servers/match.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "servers/agent.hpp"

namespace remote::servers {
namespace {

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

void check_matches(const PathPattern& pattern, const std::vector<std::string>& names) {
  if (!std::ranges::all_of(names, [&](const std::string& name) { return pattern.fits(name); })) {
    throw Error("cannot search for " + pattern.text(), "the server names a file that does not match")
        .mended_by(Remedy::tell_more);
  }
  if (names.size() > wire::max_matches) {
    throw Error("cannot search for " + pattern.text(),
                fmt::format("more than {} files match", wire::max_matches), "name their folder");
  }
}

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> match(ssh::Connection& connection, const std::string& folder,
                               const std::string& pattern, const Cancel& cancel) {
  const std::string above = pattern.starts_with('/') ? "/" : pattern.starts_with("~/") ? "~/" : "";
  const std::string from = above.empty() ? folder : above == "/" ? "/" : "~";
  const std::string relative = pattern.substr(above.size());
  AgentQuestion question;
  question.what = "look for files";
  question.request = wire::MatchesRequest{from, relative};
  question.timeout = std::chrono::seconds(30);
  auto reply = take_reply<wire::MatchesReply>(ask_agent(connection, question, cancel));
  check_matches(PathPattern(relative), reply.names);
  for (std::string& name : reply.names) {
    name.insert(0, above);
  }
  std::ranges::sort(reply.names);
  return std::move(reply.names);
}

}  // namespace remote::servers
