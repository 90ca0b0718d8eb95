#include "agent/host/users.hpp"

#include <vector>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Finds the name of an id in lines "NAME:PASSWORD:ID:…"; "" if no line has it.
std::string find_name(const std::vector<std::string>& lines, const std::string& id) {
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() > 2 && parts[2] == id) {
      return parts[0];
    }
  }
  return "";
}

}  // namespace

std::string find_account(const Host& host, const std::string& database, unsigned id) {
  const std::string number = std::to_string(id);
  std::string name = find_name(read_lines(host.system("/etc/" + database)), number);
  if (name.empty()) {
    const RunRequest request{.argv = {"getent", database, number}, .limit = std::chrono::seconds(2)};
    name = find_name(split(run(host, request).out, '\n'), number);
  }
  return name.empty() ? number : name;
}

std::string UserNames::find(uid_t uid) {
  const auto found = known_.find(uid);
  return found != known_.end() ? found->second : known_.emplace(uid, look_up(uid)).first->second;
}

std::string UserNames::look_up(uid_t uid) const {
  const std::string name = find_account(host_, "passwd", uid);
  return wire::is_name(name) && name.size() <= 100 ? name : std::to_string(uid);
}

}  // namespace remote::agent
