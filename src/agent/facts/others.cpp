#include "agent/facts/others.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "agent/host/path.hpp"
#include "agent/job/find_guards.hpp"
#include "wire/facts.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t max_projects = 1000;

}  // namespace

RunningJobs find_running_jobs(const Host& host, const Path& project) {
  std::map<std::string, std::set<std::string>> jobs;
  for (const GuardProcess& guard : find_guards(host)) {
    jobs[guard.project.string()].insert(guard.id);
  }
  RunningJobs found;
  const std::string home = host.home.string() + "/";
  for (const auto& [folder, ids] : jobs) {
    if (is_same_file(folder, project)) {
      found.here.insert(found.here.end(), ids.begin(), ids.end());
      continue;
    }
    const bool in_home = home != "/" && folder.starts_with(home);
    // The home directory of a practice server is in such a folder too.
    if (!in_home && folder.find("/.remote/sandbox/") != std::string::npos) {
      continue;
    }
    const std::string shown = in_home ? "~/" + folder.substr(home.size()) : folder;
    const auto count = static_cast<int>(std::min<std::size_t>(ids.size(), wire::max_count));
    if (found.others.size() < max_projects) {
      found.others.push_back({wire::to_line(shown, 4096), count});
    }
  }
  found.here.resize(std::min(found.here.size(), wire::max_running));
  return found;
}

}  // namespace remote::agent
