// The running jobs, and those that have ended since the user last looked.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/beneath.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "project/core.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::hours a_day{24};

// The last status that was displayed: the highest key at that time, and the unfinished jobs.
struct Told {
  int highest = 0;
  std::set<int> unfinished;
};

fs::path told_file(const Core& core) {
  return core.store.folder() / "told";
}

// nullopt if no status was displayed yet, or the file is damaged.
std::optional<Told> read_told(const Core& core) {
  const auto text = read_beneath(core.store.folder(), told_file(core));
  if (!text) {
    return std::nullopt;
  }
  Told told;
  bool first = true;
  for (const std::string& word : split_words(*text)) {
    const auto key = parse_number<int>(word);
    if (!key) {
      return std::nullopt;
    }
    if (first) {
      told.highest = *key;
    } else {
      told.unfinished.insert(*key);
    }
    first = false;
  }
  return first ? std::nullopt : std::optional(told);
}

// Whether the user has not yet seen that this job ended.
bool is_news(const Job& job, const std::optional<Told>& told) {
  if (!told) {
    return now_seconds() - end_of(job) < a_day;
  }
  return job.key > told->highest || told->unfinished.contains(job.key);
}

bool anything_sent(const Core& core) {
  return std::ranges::any_of(entries_of(core.config.local(".remote/sent")), [](const fs::path& entry) {
    const std::string name = entry.filename().string();
    return name.front() != '.' || name.starts_with(".state.");
  });
}

ProjectStatus status(Core& core) {
  ProjectStatus status;
  status.servers = static_cast<int>(core.config.servers.size());
  status.sent = anything_sent(core);
  for (const config::Server& server : core.config.servers) {
    if (servers::is_known_as_gone(core.config, server.name)) {
      status.gone.push_back(server.name);
    }
  }
  JobsRequest request;
  request.selection.hidden = false;
  const auto told = read_told(core);
  std::vector<Job> all = list(core, request);
  status.any_job = !all.empty();
  if (const auto last = std::ranges::max_element(all, {}, &Job::key); last != all.end()) {
    status.highest_key = last->key;
    std::ranges::copy_if(all, std::back_inserter(status.newest), [&](const Job& job) {
      return job.key == last->key || (job.launch && job.launch == last->launch);
    });
  }
  for (Job& job : all) {
    if (!is_over(job)) {
      status.unfinished.push_back(std::move(job));
    } else if (is_news(job, told)) {
      status.ended.push_back(std::move(job));
    }
  }
  return status;
}

void status_was_told(Core& core, const ProjectStatus& status) {
  int highest = status.highest_key;
  std::string keys;
  for (const Job& job : status.unfinished) {
    keys += " " + std::to_string(job.key);
  }
  if (const auto before = read_told(core)) {
    highest = std::max(highest, before->highest);
  }
  if (!is_folder(core.store.folder())) {
    return;  // there has never been a job
  }
  try {
    write_file_atomic(told_file(core), std::to_string(highest) + keys + "\n");
  } catch (const Error& error) {
    log_info("", "{}", error.message());  // it will be displayed again next time
  }
}

}  // namespace

}  // namespace remote::project

namespace remote {

ProjectStatus Project::status(const std::optional<Cancel>& cancel) {
  return project::call_here(*state_, cancel, [&](project::Core& core) { return project::status(core); });
}

void Project::status_was_told(const ProjectStatus& status) {
  project::call_here(*state_, {}, [&](project::Core& core) { project::status_was_told(core, status); });
}

}  // namespace remote
