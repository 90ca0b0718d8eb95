// Copies files of a job to this machine. The server chooses the names of its files and the targets of its
// links, so none of them are trusted.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "project/core.hpp"
#include "servers/match.hpp"
#include "servers/sent_state.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

namespace fs = std::filesystem;
using servers::PathKind;

// How long the partial file of an interrupted transfer is kept for a later one.
constexpr std::chrono::hours partial_age{7 * 24};
constexpr std::size_t partial_name = 16;  // hexadecimal digits

std::string full_path(const std::string& project, const std::string& asked) {
  if (asked.empty()) {
    throw Error::usage("cannot copy files", "a path is empty",
                       "give the path of a file or folder that the job wrote");
  }
  if (asked.starts_with('/') || asked.starts_with("~/")) {
    return asked;
  }
  if (fs::path(asked).lexically_normal().begin()->string() == "..") {
    throw Error::usage(fmt::format("cannot copy '{}'", asked), "it leads out of the project's folder",
                       "to copy it anyway, name it in full: /… or ~/…");
  }
  std::string_view path = asked;
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  return path.empty() || path == "." ? project + "/" : fmt::format("{}/{}", project, path);
}

struct AskedPath {
  std::string text;    // as the user wrote it
  std::string full;    // on the server
  std::string name{};  // name of the local copy; empty if the contents of a folder are copied, not the folder
};

std::vector<AskedPath> asked_paths(const std::string& project, const std::vector<std::string>& texts) {
  std::vector<AskedPath> paths;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    AskedPath path{text, full_path(project, text)};
    path.name = path.full.substr(path.full.rfind('/') + 1);
    if (path.name == "." || path.name == "..") {
      path.name.clear();
    }
    if (decides_what_runs(path.name)) {
      throw Error::usage(fmt::format("cannot copy '{}'", text),
                         fmt::format("files in '{}' control what runs on this machine", path.name),
                         "copy it under another name, or by hand");
    }
    if (!path.name.empty() && !names.insert(path.name).second) {
      throw Error::usage("cannot copy files",
                         fmt::format("two of the paths would both become '{}' here", path.name),
                         "copy them one after the other, each into its own folder");
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<AskedPath>& paths,
                              const Cancel& cancel) {
  std::vector<std::string> full;
  std::ranges::transform(paths, std::back_inserter(full), &AskedPath::full);
  return servers::look_at(connection, full, cancel);
}

// Replaces each pattern by the matching paths. A path that exists literally is not treated as a pattern.
std::vector<AskedPath> without_patterns(ssh::Connection& connection, std::vector<AskedPath> asked,
                                        const std::string& project, const Cancel& cancel) {
  if (std::ranges::none_of(asked, servers::is_pattern, &AskedPath::text)) {
    return asked;
  }
  const std::vector<PathKind> kinds = look_at(connection, asked, cancel);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string& text = asked[i].text;
    std::vector<std::string> found;
    if (kinds[i] == PathKind::missing && servers::is_pattern(text)) {
      found = servers::match(connection, project, fs::path(text).lexically_normal().string(), cancel);
    }
    if (found.empty()) {
      found = {text};  // reported later with the other missing ones
    }
    std::ranges::move(found, std::back_inserter(texts));
  }
  return asked_paths(project, texts);
}

// The files of one run of rsync.
struct PulledPart {
  std::vector<std::string> paths;
  fs::path to;
  bool copy_links = false;
};

// Follows links that are named, to a file or a folder, but not links within folders. Checks all paths before
// anything is copied; throws Error with the names of missing ones.
std::vector<PulledPart> look(ssh::Connection& connection, const std::vector<AskedPath>& asked,
                             const std::string& project, const fs::path& to, const Cancel& cancel) {
  const std::vector<PathKind> kinds = look_at(connection, asked, cancel);
  std::vector<std::string> missing;
  std::vector<PulledPart> parts = {{{}, to, false}, {{}, to, true}};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (kinds[i] == PathKind::missing) {
      missing.push_back("'" + asked[i].text + "'");
    } else if (kinds[i] == PathKind::folder_link) {
      parts.push_back({{asked[i].full + "/"}, to / asked[i].name, false});
    } else {
      parts[kinds[i] == PathKind::link ? 1 : 0].paths.push_back(asked[i].full);
    }
  }
  if (!missing.empty()) {
    throw Error("cannot copy " + join(missing, ", "), "there is no such file or folder on the server",
                fmt::format("paths are relative to {}", project));
  }
  std::erase_if(parts, [](const PulledPart& part) { return part.paths.empty(); });
  return parts;
}

// The folder for partial files of an interrupted transfer: one per request, outside the target folder.
// Removes old folders of requests that were not repeated.
fs::path partial_folder(const Core& core, const std::string& server, const std::vector<AskedPath>& paths,
                        const fs::path& to) {
  const fs::path all = core.config.local(".remote/sent/.pulls");
  make_folders(all);
  std::error_code ignored;
  for (const fs::path& entry : entries_of(all)) {
    const std::string name = entry.filename().string();
    if (name.size() == partial_name && name.find_first_not_of("0123456789abcdef") == std::string::npos &&
        fs::file_time_type::clock::now() - fs::last_write_time(entry, ignored) > partial_age) {
      fs::remove_all(entry, ignored);
    }
  }
  Sha256 digest;
  digest.add_field(server).add_field(to.string());
  for (const AskedPath& path : paths) {
    digest.add_field(path.text);
  }
  return all / digest.hex().substr(0, partial_name);
}

// Adds the result of one part; names become relative to `to`.
void add(SyncReport& report, SyncReport part, const fs::path& folder) {
  for (const auto member : {&SyncReport::changed, &SyncReport::newer}) {
    for (const std::string& name : part.*member) {
      (report.*member).push_back((folder / name).lexically_normal().string());
    }
  }
  std::ranges::move(part.warnings, std::back_inserter(report.warnings));
  report.bytes += part.bytes;
}

// Records files that were copied into the project, because the next sync would otherwise send them to all
// servers.
void remember(Core& core, const fs::path& to, const std::vector<std::string>& names) {
  const fs::path inside = resolved(to).lexically_relative(resolved(core.config.project));
  if (inside.empty() || *inside.begin() == "..") {
    return;
  }
  std::vector<std::string> brought;
  for (const std::string& name : names) {
    brought.push_back((inside / name).lexically_normal().string());
  }
  try {
    servers::ProjectState::add_pulled(core.config, brought);
  } catch (const Error& error) {
    core.tell(PartsFailed{{error}});  // the files were copied successfully
  }
}

SyncReport pull(Core& core, const PullRequest& request) {
  const config::Server& server = jobs::server_of(core.config, request.job);
  const std::string& project = request.job.remote_folder.project;
  std::vector<AskedPath> paths = asked_paths(project, request.paths);
  const fs::path to = absolute_path(request.to).lexically_normal();
  const fs::path real = resolved(to);
  if (std::ranges::any_of(real, decides_what_runs)) {
    throw Error::usage("cannot copy files into " + to.string(),
                       "files there control what runs on this machine", "choose another folder");
  }
  try {
    const auto connection = core.connector().connect(server, core.cancel());
    paths = without_patterns(*connection, std::move(paths), project, core.cancel());
    servers::PullOptions options;
    options.update = !request.force;
    options.pipe_program = core.hooks.rsync_helper;
    options.on_progress = core.on_caller(request.on_progress);
    SyncReport report;
    const std::vector<PulledPart> parts = look(*connection, paths, project, to, core.cancel());
    options.partial_folder = partial_folder(core, server.name, paths, to);
    for (const PulledPart& part : parts) {
      options.copy_links = part.copy_links;
      if (part.to != to && is_link(part.to)) {
        remove_file(part.to);  // as rsync does: a folder replaces the link, and nothing is written through it
      }
      add(report, servers::sync_from(*connection, part.paths, part.to, options, core.cancel()),
          part.to.lexically_relative(to));
    }
    std::error_code ignored;
    fs::remove_all(options.partial_folder, ignored);
    remember(core, to, report.changed);
    return report;
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

}  // namespace

}  // namespace remote::project

namespace remote {

SyncReport Project::pull(const PullRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::pull(core, request); });
}

}  // namespace remote
