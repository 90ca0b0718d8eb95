#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

#include "config/config.hpp"

// Which files of the project go to the servers: exclude.txt, and what is never sent. rsync gets filter rules
// that only the sending side applies, so it passes no line of any file to a server.

namespace remote::servers {

// A line of exclude.txt, as rsync reads it.
struct Pattern {
  std::string text;    // without "- " or "+ "
  bool shows = false;  // "+ PATTERN"
  int line = 0;
};

// "!" alone on a line removes the patterns before it.
std::vector<Pattern> parse_patterns(std::string_view text);

// The patterns of the project that can match nothing as they are written. Throws Error.
std::vector<UselessPattern> useless_patterns(const config::Config& config);

// Rules for the sender, as ssh::RsyncRequest takes them. The first that matches a name counts. `leave`: names
// in the project that are not sent. Throws Error.
std::string selection_rules(const config::Config& config, const std::vector<std::string>& leave);
// Rules for rsync's receiver: it may remove these names and no others.
std::string deletion_rules(const std::vector<std::string>& names);

}  // namespace remote::servers
