// Files that a job wrote, brought to this machine.

#include <set>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/remote_folder.hpp"
#include "project/core.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

std::string full_path(const std::string& project, std::string_view path) {
  if (path.starts_with('/') || path.starts_with("~/")) {
    return std::string(path);
  }
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  return path.empty() || path == "." ? project + "/" : fmt::format("{}/{}", project, path);
}

// The name under which a path comes here; empty where a folder's content comes, not the folder.
std::string local_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == "." || name == ".." ? "" : name;
}

std::vector<std::string> full_paths(const std::string& project, const PullRequest& request) {
  std::vector<std::string> full;
  std::set<std::string> names;
  for (const std::string& path : request.paths) {
    if (path.empty()) {
      throw Error::usage("cannot bring files", "a path is empty");
    }
    full.push_back(full_path(project, path));
    const std::string name = local_name(full.back());
    if (!name.empty() && !names.insert(name).second) {
      throw Error::usage("cannot bring files",
                         fmt::format("two of the paths would both become '{}' here", name),
                         "bring them one after the other, each into a folder of its own");
    }
  }
  return full;
}

// Looks at the paths before anything is brought. Returns whether one of them is a symlink; throws Error that
// names what is missing.
bool look(ssh::Connection& connection, const std::vector<std::string>& full,
          const std::vector<std::string>& asked, const std::string& project, const Cancel& cancel) {
  const std::vector<servers::PathKind> kinds = servers::look_at(connection, full, cancel);
  std::vector<std::string> missing;
  bool link = false;
  for (std::size_t i = 0; i < full.size(); ++i) {
    link = link || kinds[i] == servers::PathKind::link;
    if (kinds[i] == servers::PathKind::missing) {
      missing.push_back("'" + asked[i] + "'");
    }
  }
  if (!missing.empty()) {
    throw Error("cannot bring " + join(missing, ", "), "there is no such file or folder on the server",
                fmt::format("paths are looked for in {}", project));
  }
  return link;
}

}  // namespace

SyncReport pull(Core& core, const PullRequest& request) {
  const std::string project = request.job.remote_folder.project;
  const config::Server& server = jobs::server_of(core.config, request.job);
  const std::vector<std::string> full = full_paths(project, request);
  try {
    const auto connection = core.connector().connect(server, core.cancel());
    servers::PullOptions options;
    options.copy_links = look(*connection, full, request.paths, project, core.cancel());
    options.update = !request.force;
    options.pipe_program = core.hooks.rsync_helper;
    options.on_progress = core.one_at_a_time(request.on_progress);
    return servers::sync_from(*connection, full, std::filesystem::absolute(request.to).lexically_normal(),
                              options, core.cancel());
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

}  // namespace remote::project
