#include "servers/pip_hints.hpp"

#include <initializer_list>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::servers {

std::string pip_hint(std::string_view err) {
  const auto says = [err](std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
      if (err.find(text) != std::string_view::npos) {
        return true;
      }
    }
    return false;
  };
  // A network that is down also ends in "no matching distribution".
  if (says({"Temporary failure in name resolution", "Name or service not known", "NewConnectionError",
            "ConnectTimeoutError", "Network is unreachable", "Could not resolve host", "ProxyError"})) {
    return "the server does not reach the package index: python.index_url in configs.yaml names another one, "
           "python.find_links a folder with wheels";
  }
  if (says({"No space left on device", "Disk quota exceeded"})) {
    return "make room on the server's disk, then run the command again";
  }
  if (says({"ResolutionImpossible", "conflicting dependencies"})) {
    return "the requirements contradict each other: loosen one of the versions that are named";
  }
  constexpr std::string_view missing = "No matching distribution found for ";
  if (const std::size_t at = err.find(missing); at != std::string_view::npos) {
    const std::string_view rest = err.substr(at + missing.size());
    const std::string name = visible_line(trim(rest.substr(0, rest.find_first_of("\r\n"))), 80);
    return fmt::format(
        "is '{}' the right name, and does that version exist for the Python there (python.version)? Where it "
        "comes "
        "from another index, name that: python.index_url, extra_index_urls or find_links",
        name);
  }
  if (says({"error: command 'gcc' failed", "command 'x86_64-linux-gnu-gcc' failed", "Python.h: No such file",
            "Unable to find a compiler", "error: command 'g++' failed"})) {
    return "a package has to be compiled: system_packages: [build-essential, python3-dev] in configs.yaml "
           "installs "
           "what that needs";
  }
  if (says({"Permission denied", "Errno 13"})) {
    return "the login may not write to the environment: let remote make one (python: {manager: venv})";
  }
  return {};
}

}  // namespace remote::servers
