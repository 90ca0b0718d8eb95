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

Host add_variables(const Host& host, const std::vector<wire::Variable>& variables) {
  Host changed = host;
  for (const wire::Variable& variable : variables) {
    changed.environment[variable.name] = variable.value;
  }
  changed.environment["LC_ALL"] = "C";
  return changed;
}

}  // namespace remote::agent
