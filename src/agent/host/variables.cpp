#include "agent/host/variables.hpp"

#include <string>

#include "base/strings.hpp"

namespace remote::agent {

void replace_environment(Host& host, std::string_view variables) {
  host.environment.clear();
  for (const std::string& variable : split(variables, '\0')) {
    if (const std::size_t end = variable.find('='); end != std::string::npos) {
      host.environment[variable.substr(0, end)] = variable.substr(end + 1);
    }
  }
  host.environment["LC_ALL"] = "C";
}

}  // namespace remote::agent
