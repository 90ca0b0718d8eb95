// `remote job-stacks`: where all ranks of a launch stand in their Python code, the odd one out first.

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  JobOptions jobs;
  bool threads = false;
};

// The jobs to look at, asked just now: those that are named, or else the newest launch that has a running
// rank, or else the newest running job.
std::vector<Job> choose(Project& project, const JobOptions& options) {
  // One that is named and has ended is known all the same: then it is said that it does not run.
  std::vector<Job> chosen =
      project.jobs({.selection = options.selection(), .unfinished_only = options.keys.empty()});
  std::erase_if(chosen, [](const Job& job) { return is_final(job.state); });
  if (chosen.empty()) {
    throw Error::usage("job-stacks", options.named() ? "none of these jobs runs" : "no job runs",
                       "see: remote job-list --stopped");
  }
  const auto order = [](const Job& job) {
    return std::tuple(job.state == JobState::running, job.launch.has_value(), job.created_at, job.key);
  };
  const Job newest = *std::ranges::max_element(chosen, {}, order);
  if (!options.named() && newest.state == JobState::running) {
    std::erase_if(chosen, [&](const Job& job) {
      return newest.launch ? job.launch != newest.launch : job.id != newest.id;
    });
  }
  return chosen;
}

std::string name_of(const RankStack& one) {
  return one.rank ? fmt::format("rank {}", *one.rank) : fmt::format("job {}", one.job.key);
}

// "rank 2 (node-2, job 7, pid 4121)", "ranks 0, 1, 3 (node-1, node-2)".
std::string title_of(const StackGroup& group) {
  if (group.members.size() == 1) {
    const RankStack& one = group.members.front();
    return fmt::format("{} ({}, job {}, pid {})", name_of(one), one.job.server, one.job.key, one.pid);
  }
  std::vector<std::string> names;
  std::vector<std::string> servers;
  const bool ranks = std::all_of(group.members.begin(), group.members.end(),
                                 [](const RankStack& one) { return one.rank.has_value(); });
  for (const RankStack& one : group.members) {
    names.push_back(std::to_string(ranks ? *one.rank : one.job.key));
    if (std::find(servers.begin(), servers.end(), one.job.server) == servers.end()) {
      servers.push_back(one.job.server);
    }
  }
  return fmt::format("{} {} ({})", ranks ? "ranks" : "jobs", join(names, ", "), join(servers, ", "));
}

std::string group_text(const Context& context, const StackGroup& group, bool odd, bool all_threads) {
  std::string text = context.terminal.paint_out(odd ? ui::Style::red : ui::Style::bold, title_of(group));
  text += odd ? " stands elsewhere than the others:\n" : ":\n";
  const std::vector<ThreadStack>& threads = group.members.front().threads;
  for (std::size_t t = 0; t < (all_threads ? threads.size() : 1); ++t) {
    if (all_threads) {
      text += "  " + visible_line(threads[t].name) + "\n";
    }
    for (const std::string& frame : threads[t].frames) {
      text += (all_threads ? "    " : "  ") + visible_line(frame) + "\n";
    }
    if (threads[t].frames.empty()) {
      text += "  (no Python frame)\n";
    }
  }
  return text;
}

nlohmann::ordered_json member_json(const RankStack& one) {
  nlohmann::ordered_json value = {
      {"job", one.job.key}, {"id", one.job.id.text()}, {"server", one.job.server}, {"pid", one.pid}};
  value["rank"] = one.rank ? nlohmann::ordered_json(*one.rank) : nlohmann::ordered_json(nullptr);
  return value;
}

std::string all_json(const std::vector<StackGroup>& groups, const std::vector<RankStack>& without) {
  nlohmann::ordered_json all = {{"groups", nlohmann::ordered_json::array()},
                                {"without", nlohmann::ordered_json::array()}};
  for (const StackGroup& group : groups) {
    nlohmann::ordered_json value = {{"members", nlohmann::ordered_json::array()},
                                    {"threads", nlohmann::ordered_json::array()}};
    for (const RankStack& one : group.members) {
      value["members"].push_back(member_json(one));
    }
    for (const ThreadStack& thread : group.members.front().threads) {
      value["threads"].push_back({{"name", thread.name}, {"frames", thread.frames}});
    }
    all["groups"].push_back(std::move(value));
  }
  for (const RankStack& one : without) {
    nlohmann::ordered_json value = member_json(one);
    value["reason"] = one.why;
    value["kernel"] = one.kernel;
    all["without"].push_back(std::move(value));
  }
  return dump_json(all);
}

void print(Context& context, bool all_threads, const std::vector<StackGroup>& groups,
           const std::vector<RankStack>& without) {
  if (context.options.json) {
    context.terminal.out(all_json(groups, without));
    return;
  }
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool odd = i + 1 < groups.size() && groups[i].members.size() < groups.back().members.size();
    text += (text.empty() ? "" : "\n") + group_text(context, groups[i], odd, all_threads);
  }
  for (const RankStack& one : without) {
    text += fmt::format("{}{} ({}, job {}, pid {}): no Python stack: {}\n", text.empty() ? "" : "\n",
                        name_of(one), one.job.server, one.job.key, one.pid, visible_line(one.why));
    for (const std::string& line : one.kernel) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  context.terminal.out(text);
}

int run(Context& context, const Arguments& arguments) {
  std::vector<Job> chosen = choose(context.project(), arguments.jobs);
  // A server that did not answer just now would not answer again; a warning has named it.
  const bool complete =
      std::erase_if(chosen, [](const Job& job) { return job.state == JobState::unknown; }) == 0;
  const StacksResult result = context.project().stacks(chosen);
  std::vector<RankStack> without;
  std::ranges::copy_if(result.ranks, std::back_inserter(without),
                       [](const RankStack& one) { return one.threads.empty(); });
  print(context, arguments.threads, group_stacks(result.ranks, arguments.threads), without);
  for (const Job& job : result.ended) {
    context.terminal.notice(describe(job) + " has ended, or has not begun yet");
  }
  context.show(result.errors);
  if (!without.empty()) {
    context.terminal.notice(
        "for Python stacks: install py-spy in the environment on the servers (it needs the right to trace "
        "processes), or start the run with --enable-stacks");
  }
  return complete && without.empty() && result.errors.empty() && !result.ranks.empty() ? 0 : 1;
}

}  // namespace

void add_job_stacks(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "job-stacks",
                  "Show where all ranks stand in their Python code, equal ones together", run);
  arguments.jobs.add(command, context, "Jobs with this tag (default: the newest running launch)");
  command.add_flag("--threads", arguments.threads, "All threads, not the main ones alone");
}

}  // namespace remote::cli
