#include "agent/job/find_guards.hpp"

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {

std::vector<GuardProcess> find_guards(const Host& host) {
  std::vector<GuardProcess> guards;
  for (const int pid : list_processes(host)) {
    const Path process = find_process_folder(host, pid);
    if (find_owner(host, pid) != ::geteuid() || read_first_line(process / "comm") != guard_name) {
      continue;
    }
    const Path folder = read_link(process / "cwd");  // PROJECT/JOBS/ID
    if (folder.is_absolute() && wire::is_id(folder.filename()) &&
        folder.parent_path().parent_path().string().size() > 1) {
      guards.push_back({pid, folder.filename(), folder.parent_path().parent_path()});
    }
  }
  return guards;
}

}  // namespace remote::agent
