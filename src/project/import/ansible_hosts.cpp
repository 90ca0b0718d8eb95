// The parts that all Ansible inventories share: host patterns, and connection variables.

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "project/import/parts.hpp"

namespace remote::project {
namespace {

constexpr std::size_t most_hosts = 4096;

// Expands "01:20" or "a:f", optionally followed by ":STEP". Empty if it is not a range.
std::vector<std::string> range_of(std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    return {};
  }
  const int step = parts.size() == 3 ? parse_number<int>(parts[2]).value_or(0) : 1;
  std::vector<std::string> all;
  const auto letter = [](const std::string& word) {
    return word.size() == 1 && ((word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z'));
  };
  if (step < 1) {
    return {};
  }
  if (letter(parts[0]) && letter(parts[1])) {
    for (int c = parts[0][0]; c <= parts[1][0]; c += step) {
      all.emplace_back(1, static_cast<char>(c));
    }
    return all;
  }
  const auto first = parse_number<std::uint32_t>(parts[0].empty() ? "0" : parts[0]);
  const auto last = parse_number<std::uint32_t>(parts[1]);
  if (!first || !last) {
    return {};
  }
  const std::size_t width = parts[0].starts_with('0') ? std::min<std::size_t>(parts[0].size(), 20) : 0;
  for (std::uint64_t n = *first; n <= *last && all.size() <= most_hosts;
       n += static_cast<std::uint64_t>(step)) {
    all.push_back(fmt::format("{:0{}}", n, width));
  }
  return all;
}

// Expands a pattern to host names.
std::vector<std::string> expand(const std::string& pattern, const std::string& where) {
  std::vector<std::string> names{""};
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const std::size_t open = rest.find('[');
    const std::size_t close = open == std::string_view::npos ? open : rest.find(']', open);
    const std::vector<std::string> range = close == std::string_view::npos
                                               ? std::vector<std::string>{}
                                               : range_of(rest.substr(open + 1, close - open - 1));
    const std::string_view literal = range.empty() ? rest : rest.substr(0, open);
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      if (range.empty()) {
        longer.push_back(name + std::string(literal));
      }
      for (const std::string& part : range) {
        longer.push_back(name + std::string(literal) + part);
      }
      if (longer.size() > most_hosts) {
        throw Error::usage(
            where, fmt::format("'{}' names more than {} hosts", config::printable(pattern), most_hosts),
            "name a group of fewer hosts");
      }
    }
    names = std::move(longer);
    rest = range.empty() ? std::string_view() : rest.substr(close + 1);
  }
  return names;
}

// Splits "name:22"; does not split an IPv6 address.
std::pair<std::string, std::string> split_port(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || name.find(':') != colon || !parse_number<int>(name.substr(colon + 1))) {
    return {name, ""};
  }
  return {name.substr(0, colon), name.substr(colon + 1)};
}

constexpr std::array known_vars{"ansible_host",
                                "ansible_user",
                                "ansible_port",
                                "ansible_private_key_file",
                                "ansible_connection",
                                "ansible_ssh_host",
                                "ansible_ssh_user",
                                "ansible_ssh_port",
                                "ansible_ssh_private_key_file",
                                "ansible_password",
                                "ansible_ssh_pass",
                                "ansible_ssh_common_args",
                                "ansible_ssh_extra_args"};

}  // namespace

void set_ansible_var(const std::string& name, const std::string& value, AnsibleVars& vars) {
  if (std::ranges::find(known_vars, name) != known_vars.end()) {
    vars[name] = value;
  }
}

void add_ansible_hosts(const std::string& pattern, const AnsibleVars& vars, const std::string& where,
                       ServerListBuilder& list) {
  // Skips templates, because nothing here evaluates them.
  const auto value = [&](const std::string& name, const char* key) -> std::string {
    for (const std::string& full : {std::string("ansible_") + key, std::string("ansible_ssh_") + key}) {
      if (const auto found = vars.find(full); found != vars.end()) {
        if (found->second.find("{{") == std::string::npos) {
          return found->second;
        }
        list.leave_out(name, full + " (a template)");
      }
    }
    return "";
  };
  const auto [pattern_name, port] = split_port(pattern);
  for (const std::string& name : expand(pattern_name, where)) {
    if (value(name, "connection") == "local") {
      list.leave_out(name, "ansible_connection: local");
      continue;
    }
    FoundServer found;
    found.where = where;
    found.name = name;
    found.hostname = value(name, "host");
    found.user = value(name, "user");
    found.port = value(name, "port");
    if (found.port.empty()) {
      found.port = port;
    }
    found.key = value(name, "private_key_file");
    list.add(found);
    for (const char* key :
         {"ansible_password", "ansible_ssh_pass", "ansible_ssh_common_args", "ansible_ssh_extra_args"}) {
      if (vars.contains(key)) {
        list.leave_out(name, key);
      }
    }
  }
}

}  // namespace remote::project
