#include "agent/facts/logind.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/files.hpp"
#include "agent/host/path.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// In ascending priority (logind.conf(5)).
constexpr std::array logind_folders{"/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd",
                                    "/etc/systemd"};
constexpr std::size_t max_listed_users = 1000;

// The main file of the highest priority, then the drop-ins, sorted by name. A drop-in hides drop-ins of the
// same name in folders of lower priority.
std::vector<Path> find_logind_files(const Host& host) {
  Path main;
  std::map<std::string, Path> drop_ins;
  for (const char* name : logind_folders) {
    const Path folder = host.system(name);
    if (exists(folder / "logind.conf")) {
      main = folder / "logind.conf";
    }
    for (const std::string& drop_in : list_names(folder / "logind.conf.d")) {
      if (drop_in.ends_with(".conf")) {
        drop_ins[drop_in] = folder / "logind.conf.d" / drop_in;
      }
    }
  }
  std::vector<Path> files{main};
  for (const auto& [name, path] : drop_ins) {
    files.push_back(path);
  }
  return files;
}

bool means_yes(std::string_view value) {
  constexpr std::array<std::string_view, 6> words{"yes", "true", "on", "1", "y", "t"};
  return std::ranges::find(words, lower_case(value)) != words.end();
}

// Lists from all files are merged; an empty value clears the list.
void add_users(std::string_view value, std::vector<std::string>& users) {
  if (value.empty()) {
    users.clear();
  }
  for (const std::string& user : split_words(value)) {
    if (users.size() < max_listed_users) {
      users.push_back(wire::to_line(user));
    }
  }
}

bool is_session_scope(std::string_view group) {
  return group.starts_with("session-") && group.ends_with(".scope");
}

}  // namespace

void read_logind(const Host& host, ServerFacts& facts) {
  for (const std::string& line : read_lines(host.system("/proc/self/cgroup"))) {
    const std::vector<std::string> groups = split(line, '/');
    facts.in_session = facts.in_session || std::ranges::any_of(groups, is_session_scope);
  }
  if (!is_folder(host.system("/run/systemd/system"))) {
    return;  // systemd is not running
  }
  facts.removes_ipc = true;  // logind's default
  for (const Path& file : find_logind_files(host)) {
    for (const std::string& line : read_lines(file)) {
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos) {
        continue;
      }
      const std::string_view name = trim(std::string_view(line).substr(0, equals));
      const std::string_view value = trim(std::string_view(line).substr(equals + 1));
      if (name == "KillUserProcesses") {
        facts.kill_user_processes = means_yes(value);
      } else if (name == "RemoveIPC") {
        facts.removes_ipc = means_yes(value);
      } else if (name == "KillExcludeUsers") {
        add_users(value, facts.kill_excluded);
      } else if (name == "KillOnlyUsers") {
        add_users(value, facts.kill_only);
      }
    }
  }
}

}  // namespace remote::agent
