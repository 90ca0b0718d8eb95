#include "agent/host/name_service.hpp"

#include <algorithm>
#include <string_view>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t max_addresses = 64;

std::vector<std::string> find_in_hosts(const Host& host, std::string_view name) {
  for (const std::string& line : read_lines(host.system("/etc/hosts"))) {
    const std::vector<std::string> words = split_words(std::string_view(line).substr(0, line.find('#')));
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (lower_case(words[i]) == lower_case(name)) {
        return {words.front()};
      }
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> look_up_name(const Host& host, const std::string& name,
                                      std::chrono::milliseconds limit) {
  if (name.empty() || name.starts_with('-') || name.find(':') != std::string::npos) {
    return {};
  }
  std::vector<std::string> found;
  // getent prints a line for each address and socket type: "10.0.0.1       STREAM node1".
  const RunResult result = run(host, {.argv = {"getent", "ahosts", name}, .limit = limit});
  for (const std::string& line : split(result.succeeded() ? result.out : "", '\n')) {
    const std::string address = line.substr(0, line.find_first_of(" \t"));
    if (!address.empty() && found.size() < max_addresses &&
        std::find(found.begin(), found.end(), address) == found.end()) {
      found.push_back(address);
    }
  }
  return found.empty() ? find_in_hosts(host, name) : found;
}

}  // namespace remote::agent
