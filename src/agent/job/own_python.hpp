#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

// Finds a Python on a server for remote's own programs, which use only the standard library.

namespace remote::agent {

struct OwnPython {
  Path program;
  std::vector<std::string> options;  // "-B", "-S" and, unless it needs PYTHONHOME, "-I"

  // Uses this interpreter, with the options that it supports.
  static OwnPython of(const Host& host, const Path& program);

  // Returns the command line PROGRAM OPTIONS... WORDS...
  std::vector<std::string> command(const std::vector<std::string>& words) const;
};

// Returns the first python3 or python on the host's PATH with version 3.6 or later. If there is none, runs
// the shell code `activate` and returns the Python of that environment. Throws CannotStart.
std::optional<OwnPython> find_own_python(const Host& host, const std::string& activate);

}  // namespace remote::agent
