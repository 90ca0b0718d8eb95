#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

struct FoundPython {
  Path program;         // "": none
  std::string version;  // "3.11.2"; "": unknown
  // Why the first Python that was tried is not used: "/opt/shims/python3: pyenv: no such command". Untrusted
  // text.
  std::string refusal;
};

// Returns the first Python 3.6 or newer in any folder of PATH. `version`: the requested one, such as "3.11";
// "": any. `pythonVERSION` has priority over `python3` and `python`.
FoundPython find_python(const Host& host, const std::string& version);
bool is_python(const Host& host, const Path& program, const std::string& version);

// Returns a Python that programs started by ssh do not find: on the PATH of login shells, of interactive
// shells or of a container's first process, or in a folder that installers use. "": none. Can take ten
// seconds.
Path find_hidden_python(const Host& host, const std::string& version);

}  // namespace remote::agent
