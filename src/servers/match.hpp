#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

// Patterns for names of files on a server.

namespace remote::servers {

// Whether the path has a character of a pattern: * ? [
bool is_pattern(std::string_view path);

// A path of which each part may be a pattern: '*' and '?' stand for no '/', nor for a '.' that begins a name.
class PathPattern {
 public:
  explicit PathPattern(const std::string& path);
  std::string text() const;
  bool fits(const std::string& name) const;
  // Whether the name, or a folder that it is in, fits.
  bool fits_within(const std::string& name) const;

 private:
  std::vector<std::string> parts_;
};

// Throws Error for a name that does not fit the pattern, because a server may name any file, and for more
// than wire::max_matches names.
void check_matches(const PathPattern& pattern, const std::vector<std::string>& names);

// The paths on the server that fit a PathPattern, sorted, as it is written: relative to `folder`, or from "/"
// or "~/" on. Throws Error.
std::vector<std::string> match(ssh::Connection& connection, const std::string& folder,
                               const std::string& pattern, const Cancel& cancel);

}  // namespace remote::servers
