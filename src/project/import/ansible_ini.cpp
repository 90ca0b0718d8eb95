// Ansible's INI inventory: hosts followed by variables, sections [group], [group:vars] and [group:children].

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "project/import/parts.hpp"

namespace remote::project {
namespace {

struct Line {
  std::string pattern;
  AnsibleVars vars;
  std::string group;
  std::string where;
};

struct Inventory {
  std::vector<Line> hosts;
  std::map<std::string, AnsibleVars, std::less<>> vars;  // by group
  std::map<std::string, std::vector<std::string>, std::less<>> parents;
};

// Splits a line into words like a shell; a word that starts with '#' begins a comment.
std::vector<std::string> words_of(std::string_view line, const std::string& where) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\r')) {
      if (inside) {
        words.push_back(std::move(word));
        word.clear();
      }
      inside = false;
      continue;
    }
    if (quote == 0 && c == '#' && !inside) {
      break;
    }
    inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  if (quote != 0) {
    throw Error::usage(where, "a quote is not closed", "close it, or take it out");
  }
  if (inside) {
    words.push_back(std::move(word));
  }
  return words;
}

void take_host(std::string_view line, const std::string& group, const std::string& where,
               Inventory& inventory) {
  const std::vector<std::string> words = words_of(line, where);
  if (words.empty()) {
    return;
  }
  Line& host = inventory.hosts.emplace_back();
  host.pattern = words.front();
  host.group = group;
  host.where = where;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      throw Error::usage(where, fmt::format("'{}' is not understood", config::printable(words[i])),
                         "write NAME=VALUE after a host");
    }
    set_ansible_var(words[i].substr(0, equals), words[i].substr(equals + 1), host.vars);
  }
}

// "NAME=VALUE", with optional spaces around the '=' and optional quotes around the value.
void take_variable(std::string_view line, AnsibleVars& vars) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return;
  }
  std::string_view value = trim(line.substr(equals + 1));
  if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
    value = value.substr(1, value.size() - 2);
  }
  set_ansible_var(std::string(trim(line.substr(0, equals))), std::string(value), vars);
}

Inventory read_lines(std::string_view text, const ServerListBuilder& list) {
  Inventory inventory;
  std::string group = "ungrouped";
  std::string kind;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) {
      continue;
    }
    if (line.starts_with('[')) {
      const std::string_view title = line.substr(1, line.find(']') - 1);
      const std::size_t colon = title.find(':');
      group = std::string(title.substr(0, colon));
      kind = colon == std::string_view::npos ? "" : std::string(title.substr(colon + 1));
      if (line.find(']') == std::string_view::npos || group.empty() ||
          (!kind.empty() && kind != "vars" && kind != "children")) {
        throw Error::usage(list.where(number), "this is not a section",
                           "write [group], [group:vars] or [group:children]");
      }
    } else if (kind == "vars") {
      take_variable(line, inventory.vars[group]);
    } else if (kind == "children") {
      inventory.parents[std::string(line)].push_back(group);
    } else {
      take_host(line, group, list.where(number), inventory);
    }
  }
  return inventory;
}

// The variables of a group: those of its parent groups, overridden by its own. Visits each group once;
// ignores cycles, and groups more than 32 levels up.
const AnsibleVars& vars_of(const Inventory& inventory, const std::string& group, int depth,
                           std::map<std::string, AnsibleVars, std::less<>>& known) {
  const auto [entry, fresh] = known.try_emplace(group);
  AnsibleVars& vars = entry->second;
  if (!fresh) {
    return vars;
  }
  if (const auto above = inventory.parents.find(group); above != inventory.parents.end() && depth < 32) {
    for (const std::string& parent : above->second) {
      for (const auto& [name, value] : vars_of(inventory, parent, depth + 1, known)) {
        vars[name] = value;
      }
    }
  }
  if (const auto own = inventory.vars.find(group); own != inventory.vars.end()) {
    for (const auto& [name, value] : own->second) {
      vars[name] = value;
    }
  }
  return vars;
}

}  // namespace

void read_ansible_ini(std::string_view text, ServerListBuilder& list) {
  const Inventory inventory = read_lines(text, list);
  // A host may be in several groups: the variables of all of them apply, and its own override them.
  std::map<std::string, AnsibleVars, std::less<>> known;
  std::map<std::string, AnsibleVars, std::less<>> by_pattern;
  for (const Line& line : inventory.hosts) {
    for (const std::string& group : {std::string("all"), line.group}) {
      for (const auto& [name, value] : vars_of(inventory, group, 0, known)) {
        by_pattern[line.pattern][name] = value;
      }
    }
  }
  for (const Line& line : inventory.hosts) {
    for (const auto& [name, value] : line.vars) {
      by_pattern[line.pattern][name] = value;
    }
  }
  for (const Line& line : inventory.hosts) {
    add_ansible_hosts(line.pattern, by_pattern[line.pattern], line.where, list);
  }
}

}  // namespace remote::project
