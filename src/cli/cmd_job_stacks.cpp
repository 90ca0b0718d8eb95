// `remote job-stacks`: where all ranks of a launch stand in their Python code, the odd one out first.

#include <algorithm>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "jobs/select.hpp"
#include "jobs/stacks.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> tags;
  bool threads = false;
};

bool newer(const jobs::Job& a, const jobs::Job& b) {
  return std::pair(a.created_at, a.key) > std::pair(b.created_at, b.key);
}

// The jobs to look at, asked just now: those that are named, or else the newest launch that has a running
// rank, or else the newest running job.
std::vector<jobs::Job> choose(Context& context, jobs::Store& store, const Arguments& arguments) {
  const std::vector<jobs::Job> stored = stored_jobs(context, store);
  JobSelection selection;
  selection.names = arguments.keys;
  selection.tags = arguments.tags;
  std::vector<jobs::Job> chosen = jobs::select(stored, selection);
  std::erase_if(chosen, [](const jobs::Job& job) { return jobs::is_final(job.state); });
  chosen = ask_servers(context, store, std::move(chosen));
  std::erase_if(chosen, [](const jobs::Job& job) { return jobs::is_final(job.state); });
  if (chosen.empty()) {
    const bool named = !arguments.keys.empty() || !arguments.tags.empty();
    throw Error::usage("job-stacks", named ? "none of these jobs runs" : "no job runs",
                       "see: remote job-list --stopped");
  }
  if (arguments.keys.empty() && arguments.tags.empty()) {
    const jobs::Job* newest = nullptr;
    for (const jobs::Job& job : chosen) {
      const bool runs = job.state == jobs::State::running;
      const bool better = newest == nullptr || (job.launch && !newest->launch) ||
                          (job.launch.has_value() == newest->launch.has_value() && newer(job, *newest));
      if (runs && better) {
        newest = &job;
      }
    }
    if (newest != nullptr) {
      const jobs::Job of = *newest;
      std::erase_if(chosen, [&](const jobs::Job& job) {
        return of.launch ? job.launch != of.launch : job.id != of.id;
      });
    }
  }
  return chosen;
}

std::string name_of(const jobs::RankStack& one) {
  return one.rank ? fmt::format("rank {}", *one.rank) : fmt::format("job {}", one.job.key);
}

// "rank 2 (node-2, job 7, pid 4121)", "ranks 0, 1, 3 (node-1, node-2)".
std::string title_of(const jobs::StackGroup& group) {
  if (group.members.size() == 1) {
    const jobs::RankStack& one = group.members.front();
    return fmt::format("{} ({}, job {}, pid {})", name_of(one), one.job.server, one.job.key, one.dump.pid);
  }
  std::vector<std::string> names;
  std::vector<std::string> servers;
  const bool ranks = std::all_of(group.members.begin(), group.members.end(),
                                 [](const jobs::RankStack& one) { return one.rank.has_value(); });
  for (const jobs::RankStack& one : group.members) {
    names.push_back(std::to_string(ranks ? *one.rank : one.job.key));
    if (std::find(servers.begin(), servers.end(), one.job.server) == servers.end()) {
      servers.push_back(one.job.server);
    }
  }
  return fmt::format("{} {} ({})", ranks ? "ranks" : "jobs", join(names, ", "), join(servers, ", "));
}

std::string group_text(const Context& context, const jobs::StackGroup& group, bool odd, bool all_threads) {
  std::string text = context.terminal.paint_out(odd ? ui::Style::red : ui::Style::bold, title_of(group));
  text += odd ? " stands elsewhere than the others:\n" : ":\n";
  const std::vector<jobs::ThreadStack>& threads = group.members.front().threads;
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

nlohmann::ordered_json member_json(const jobs::RankStack& one) {
  nlohmann::ordered_json value = {
      {"job", one.job.key}, {"id", one.job.id.text()}, {"server", one.job.server}, {"pid", one.dump.pid}};
  value["rank"] = one.rank ? nlohmann::ordered_json(*one.rank) : nlohmann::ordered_json(nullptr);
  return value;
}

std::string all_json(const std::vector<jobs::StackGroup>& groups,
                     const std::vector<jobs::RankStack>& without) {
  nlohmann::ordered_json all = {{"groups", nlohmann::ordered_json::array()},
                                {"without", nlohmann::ordered_json::array()}};
  for (const jobs::StackGroup& group : groups) {
    nlohmann::ordered_json value = {{"members", nlohmann::ordered_json::array()},
                                    {"threads", nlohmann::ordered_json::array()}};
    for (const jobs::RankStack& one : group.members) {
      value["members"].push_back(member_json(one));
    }
    for (const jobs::ThreadStack& thread : group.members.front().threads) {
      value["threads"].push_back({{"name", thread.name}, {"frames", thread.frames}});
    }
    all["groups"].push_back(std::move(value));
  }
  for (const jobs::RankStack& one : without) {
    nlohmann::ordered_json value = member_json(one);
    value["reason"] = one.dump.why;
    value["kernel"] = one.dump.lines;
    all["without"].push_back(std::move(value));
  }
  return dump_json(all);
}

void print(Context& context, const Arguments& arguments, const std::vector<jobs::StackGroup>& groups,
           const std::vector<jobs::RankStack>& without) {
  if (context.options.json) {
    context.terminal.out(all_json(groups, without));
    return;
  }
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool odd = i + 1 < groups.size() && groups[i].members.size() < groups.back().members.size();
    text += (text.empty() ? "" : "\n") + group_text(context, groups[i], odd, arguments.threads);
  }
  for (const jobs::RankStack& one : without) {
    text += fmt::format("{}{} ({}, job {}, pid {}): no Python stack: {}\n", text.empty() ? "" : "\n",
                        name_of(one), one.job.server, one.job.key, one.dump.pid, visible_line(one.dump.why));
    for (const std::string& line : one.dump.lines) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  context.terminal.out(text);
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  std::vector<jobs::Job> chosen = choose(context, store, arguments);
  // ask_servers has warned of those that did not answer, and it is the quick one: they would not now either.
  const bool complete =
      std::erase_if(chosen, [](const jobs::Job& job) { return job.state == jobs::State::unknown; }) == 0;
  const jobs::StacksResult result =
      jobs::read_stacks(context.config(), context.connector(), chosen, context.cancel);
  context.show_new_host_keys();
  std::vector<jobs::RankStack> without;
  for (const jobs::RankStack& one : result.ranks) {
    if (one.threads.empty()) {
      without.push_back(one);
    }
  }
  print(context, arguments, jobs::group_stacks(result.ranks, arguments.threads), without);
  for (const jobs::Job& job : result.ended) {
    context.terminal.notice(describe(job) + " has ended, or has not begun yet");
  }
  for (const Error& error : result.errors) {
    context.show(error);
  }
  if (!without.empty()) {
    context.terminal.notice(
        "for Python stacks: install py-spy in the environment on the servers (it needs the right to trace "
        "processes), or start the run with --enable-stacks");
  }
  return complete && without.empty() && result.errors.empty() && !result.ranks.empty() ? 0 : 1;
}

}  // namespace

void add_job_stacks(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "job-stacks", "Show where all ranks stand in their Python code, equal ones together");
  const auto arguments = std::make_shared<Arguments>();
  add_job_option(*command, arguments->keys);
  add_tag_option(*command, arguments->tags, "Jobs with this tag (default: the newest running launch)");
  command->add_flag("--threads", arguments->threads, "All threads, not the main ones alone");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
