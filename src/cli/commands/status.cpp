// `remote status`, and `remote` alone in a project: what runs, what ended since the last time, and what to do
// next.

#include "cli/commands/status.hpp"

#include <algorithm>
#include <map>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "jobs/job_json.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

// The ranks of one launch, or one job, by key.
using Group = std::vector<Job>;

std::vector<Group> groups_of(const std::vector<Job>& jobs) {
  std::vector<Group> groups;
  for (const Job& job : jobs) {
    const auto same = std::ranges::find_if(
        groups, [&](const Group& group) { return job.launch && group.front().launch == job.launch; });
    if (same == groups.end()) {
      groups.push_back({job});
    } else {
      same->push_back(job);
    }
  }
  return groups;
}

// "45-48", or "45, 47".
std::string keys_of(const Group& group) {
  const int count = static_cast<int>(group.size());
  if (count > 1 && group.back().key - group.front().key == count - 1) {
    return fmt::format("{}-{}", group.front().key, group.back().key);
  }
  std::vector<std::string> keys;
  for (const Job& job : group) {
    keys.push_back(std::to_string(job.key));
  }
  return join(keys, ", ");
}

std::string servers_of(const Group& group) {
  std::vector<std::string> names;
  for (const Job& job : group) {
    if (std::ranges::find(names, job.server) == names.end()) {
      names.push_back(job.server);
    }
  }
  return names.size() > 3 ? counted(names.size(), "server") : join(names, ", ");
}

// The job whose end explains those of the others: one that failed by itself.
const Job* failed_one(const Group& group) {
  const Job* first = nullptr;
  const auto moment = [](const Job& job) {
    return job.failed_ms.value_or(job.ended_at.value_or(job.created_at) * 1000);
  };
  for (const Job& job : group) {
    const bool failed = job.state == JobState::failed || job.state == JobState::lost;
    if (failed && (first == nullptr || moment(job) < moment(*first))) {
      first = &job;
    }
  }
  return first;
}

// "running", "3 running, 1 unknown", "failed exit 3 (rank 2)".
std::string state_of(const Group& group) {
  if (group.size() == 1) {
    return state_text(group.front());
  }
  if (const Job* failed = failed_one(group)) {
    return fmt::format("{} (rank {})", state_text(*failed), failed->rank.value_or(0));
  }
  std::map<JobState, std::size_t> states;
  for (const Job& job : group) {
    ++states[job.state];
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : states) {
    parts.push_back(states.size() == 1 ? std::string(to_string(state))
                                       : fmt::format("{} {}", count, to_string(state)));
  }
  return join(parts, ", ");
}

std::string time_of(const Group& group) {
  std::optional<std::int64_t> begin;
  std::int64_t end = 0;
  bool ended = true;
  for (const Job& job : group) {
    if (job.started_at) {
      begin = std::min(begin.value_or(*job.started_at), *job.started_at);
    }
    ended = ended && job.ended_at.has_value();
    end = std::max(end, job.ended_at.value_or(0));
  }
  return begin ? format_duration((ended ? end : now_seconds()) - *begin) : "-";
}

std::string table_text(const Context& context, const std::vector<Group>& running,
                       const std::vector<Group>& ended) {
  ui::Table table({"KEY", "STATE", "SERVER", {"RANKS", true}, {"TIME", true}, "COMMAND"});
  for (const auto* groups : {&running, &ended}) {
    for (const Group& group : *groups) {
      const bool good = std::ranges::all_of(
          group, [](const Job& job) { return !is_final(job.state) || job.state == JobState::succeeded; });
      const ui::Style style = !good                ? ui::Style::red
                              : groups == &running ? ui::Style::green
                                                   : ui::Style::plain;
      table.add({keys_of(group), ui::Cell(state_of(group), style), servers_of(group),
                 group.front().rank ? std::to_string(group.size()) : "", time_of(group),
                 group.front().command});
    }
  }
  return table.text(context.terminal);
}

// A command, and what it is for.
struct Advice {
  std::string why;
  std::string command;
};

std::vector<Advice> advice(Context& context, const ProjectStatus& status, const std::vector<Group>& running,
                           const std::vector<Group>& ended) {
  std::vector<Advice> all;
  if (status.servers == 0) {
    return {{"for practice servers (or add your own to .remote/configs.yaml)", "remote sandbox up"}};
  }
  if (!running.empty()) {
    const Group& newest = running.back();
    const auto first = std::ranges::find_if(newest, [](const Job& job) { return job.rank == 0; });
    const Job& job = first == newest.end() ? newest.front() : *first;
    all.push_back(
        {job.rank ? "to follow rank 0" : "to follow it", fmt::format("remote job-tail --job {}", job.key)});
  }
  for (auto group = ended.rbegin(); group != ended.rend(); ++group) {
    if (const Job* failed = failed_one(*group)) {
      all.push_back({fmt::format("to see why {} failed", describe(*failed)),
                     fmt::format("remote job-tail --job {}", failed->key)});
      break;
    }
  }
  if (running.empty() && !status.sent && !status.any_job) {
    all.push_back({"to make the servers ready", "remote prepare"});
  } else if (running.empty()) {
    const bool usual = context.project().launch_defaults().command.has_value();
    all.push_back({"to train", usual ? "remote torch-launch" : "remote torch-launch --rsync -- train.py"});
  }
  return all;
}

nlohmann::ordered_json json_of(const std::vector<Job>& jobs) {
  auto array = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return array;
}

}  // namespace

int show_status(Context& context) {
  Project& project = context.project();
  const ProjectStatus status = project.status();
  const std::vector<Group> running = groups_of(status.unfinished);
  const std::vector<Group> ended = groups_of(status.ended);
  const std::vector<Advice> next = advice(context, status, running, ended);
  if (context.options.json) {
    nlohmann::ordered_json json = {{"project", project.name()},
                                   {"folder", project.folder().string()},
                                   {"unfinished", json_of(status.unfinished)},
                                   {"ended", json_of(status.ended)},
                                   {"next", nlohmann::ordered_json::array()}};
    for (const Advice& one : next) {
      json["next"].push_back({{"command", one.command}, {"why", one.why}});
    }
    context.terminal.out(dump_json(json));
    return 0;
  }
  if (!running.empty() || !ended.empty()) {
    context.terminal.out(table_text(context, running, ended));
  }
  context.terminal.notice(fmt::format(
      "{}: {} on {}{}", project.name(),
      status.unfinished.empty() ? "nothing runs" : counted(status.unfinished.size(), "unfinished job"),
      counted(static_cast<std::size_t>(status.servers), "server"),
      status.ended.empty()
          ? ""
          : fmt::format(", {} ended since the last time", counted(status.ended.size(), "job"))));
  for (const Advice& one : next) {
    context.terminal.notice(fmt::format("{}: {}", one.why, one.command));
  }
  project.status_was_told(status);
  return 0;
}

void add_status(CLI::App& app, Context& context) {
  struct None {};
  add_command<None>(app, context, "status",
                    "Show what runs, what ended since the last time, and what to do next",
                    [](Context& given, const None&) { return show_status(given); });
}

}  // namespace remote::cli
