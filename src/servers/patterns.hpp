#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

#include "config/config.hpp"

// Determines which files of the project are sent to the servers: exclude.txt, and names that are never sent.
// Only the sending side applies rsync's filter rules, so no line of exclude.txt reaches a server.

namespace remote::servers {

// A line of exclude.txt, parsed like rsync does.
struct Pattern {
  std::string text;    // without "- " or "+ "
  bool shows = false;  // "+ PATTERN"
  int line = 0;
};

// A line with only "!" removes the patterns before it.
std::vector<Pattern> parse_patterns(std::string_view text);

// The project's patterns that cannot match anything. Throws Error.
std::vector<UselessPattern> useless_patterns(const config::Config& config);

// Rules for the sender, in the format of ssh::RsyncRequest. For each name, the first matching rule counts.
// `leave` lists names in the project that are not sent. Throws Error.
std::string selection_rules(const config::Config& config, const std::vector<std::string>& leave);
// Rules for rsync's receiver, which may only remove these names.
std::string deletion_rules(const std::vector<std::string>& names);

}  // namespace remote::servers
