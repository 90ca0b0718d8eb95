#include <memory>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/remove.hpp"
#include "agent/provision/provision.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view partials_name = ".rsync-partial";  // see servers/sync.cpp
constexpr int deepest_level = 200;                            // each level keeps a file open

// Takes ownership of the descriptor. Removes these folders in it and in its subfolders. Links are not
// followed.
void remove_partials_in(int descriptor, int level) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(descriptor), &::closedir);
  if (!folder) {
    ::close(descriptor);
    return;
  }
  bool has_partials = false;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)) {
      continue;
    }
    if (name == partials_name) {
      has_partials = true;
    } else if (level < deepest_level) {
      const int below =
          ::openat(descriptor, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
      if (below >= 0) {
        remove_partials_in(below, level + 1);
      }
    }
  }
  if (has_partials) {
    remove_folder("/proc/self/fd/" + std::to_string(descriptor), std::string(partials_name), "");
  }
}

}  // namespace

wire::RemovePartialsReply remove_partials(const Host& host, const wire::RemovePartialsRequest& request) {
  const int project =
      ::open(host.expand(request.project).c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (project >= 0) {
    remove_partials_in(project, 0);
  }
  return {};
}

}  // namespace remote::agent
