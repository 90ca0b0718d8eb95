#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

// Patterns for file names on a server.

namespace remote::servers {

// Whether the path has a character of a pattern: * ? [
bool is_pattern(std::string_view path);

// A path whose parts may be patterns: '*' and '?' match neither '/' nor a '.' at the beginning of a name.
class PathPattern {
 public:
  explicit PathPattern(const std::string& path);
  std::string text() const;
  bool fits(const std::string& name) const;
  // Whether the name or a folder that contains it matches.
  bool fits_within(const std::string& name) const;

 private:
  std::vector<std::string> parts_;
};

// Throws Error for more than wire::max_matches names, and for a name that does not match the pattern, because
// a server could send any name.
void check_matches(const PathPattern& pattern, const std::vector<std::string>& names);

// The sorted paths on the server that match a PathPattern. They are relative to `folder`, or start with "/"
// or "~/", like the pattern. Throws Error.
std::vector<std::string> match(ssh::Connection& connection, const std::string& folder,
                               const std::string& pattern, const Cancel& cancel);

}  // namespace remote::servers
