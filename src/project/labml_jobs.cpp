// Jobs that labml_remote started in this project: <jobs folder>/<id>/job.yaml.

#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/command.hpp"
#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/yaml_reader.hpp"
#include "jobs/job_json.hpp"
#include "jobs/job_servers.hpp"
#include "project/core.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

std::string scalar(const config::YamlNode& map, const std::string& key) {
  const config::YamlNode::Entry* entry = map.find(key);
  return entry != nullptr && entry->value->kind == config::YamlNode::Kind::scalar ? entry->value->text : "";
}

// Converts a record to a Job; nullopt if it is invalid, or if configs.yaml does not have its server.
std::optional<Job> read_record(const config::Config& config, const JobId& id, const std::string& text) {
  const config::NodePtr node = config::read_yaml(text, "job.yaml");
  if (node->kind != config::YamlNode::Kind::map) {
    return std::nullopt;
  }
  Job job;
  job.id = id;
  job.server = scalar(*node, "server");
  job.backend = "labml";
  job.key = parse_number<int>(scalar(*node, "job_key")).value_or(0);
  const auto server = std::ranges::find(config.servers, job.server, &config::Server::name);
  if (server == config.servers.end() || job.key < 1) {
    return std::nullopt;
  }
  job.remote_folder = jobs::remote_folder_for(config, *server);
  job.command = mask_command(scalar(*node, "command"));
  if (const auto* tags = node->find("tags")) {
    for (const config::NodePtr& tag : tags->value->items) {
      job.tags.push_back(tag->text);
    }
  }
  job.hidden = job.has_tag("__hidden__");
  job.pid = parse_number<int>(scalar(*node, "pid"));
  if (scalar(*node, "started") != "true") {
    job.state = JobState::lost;
    job.reason.kind = JobReason::Kind::never_started;
  } else if (scalar(*node, "stopped") == "true") {
    job.state = JobState::lost;
    job.reason.kind = JobReason::Kind::no_result;  // labml_remote does not record how a job ended
  } else {
    job.state = JobState::running;
  }
  return job;
}

void adopt(const Core& core, const JobId& id) {
  const fs::path common = core.config.local(core.config.jobs_folder);
  const fs::path name = fs::path(id.text()) / "job.yaml";
  struct stat info {};
  const UniqueFd fd = is_there(core.store.record_file(id)) ? UniqueFd() : open_beneath(common, name);
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return;
  }
  auto job = read_record(core.config, id, read_rest(fd, common / name, max_text_bytes));
  if (job) {
    job->created_at = Instant(std::chrono::seconds(info.st_mtime));
    job->started_at = job->created_at;
    make_folders(core.store.job_folder(id));
    // The store treats it like a job that was copied in, and gives it a new key if its own is in use.
    write_file_atomic(core.store.record_file(id), jobs::to_json_text(*job));
  }
}

}  // namespace

fs::path store_folder(const config::Config& config) {
  fs::path common = config.local(config.jobs_folder);
  fs::path own = config.project / config::Config::own_jobs_folder;
  if (is_there(common / "last_key") || is_there(common / "index")) {
    return common;  // also if its jobs were copied there; checking each folder takes time
  }
  if (is_there(own)) {
    return own;
  }
  for (const fs::path& folder : entries_of(common)) {
    if (is_there(folder / "job.yaml")) {
      return own;
    }
  }
  return common;
}

void adopt_labml_jobs(const Core& core) {
  const fs::path common = core.config.local(core.config.jobs_folder);
  if (core.store.folder() == common) {
    return;  // labml_remote has no jobs there
  }
  for (const fs::path& folder : entries_of(common)) {
    const auto id = JobId::parse(folder.filename().string());
    try {
      if (id && is_folder(folder) && !is_link(folder)) {
        adopt(core, *id);
      }
    } catch (const std::exception&) {
      // An unreadable record of another program, or one that cannot be copied, is not an error.
    }
  }
}

}  // namespace remote::project
