// `remote job-stacks`: shows the Python stacks of all ranks of a launch, starting with those that differ.

#include <algorithm>
#include <iterator>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/group_by.hpp"
#include "base/json.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/running_ranks.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

struct StacksArguments {
  JobOptions jobs;
  bool threads = false;
};

std::string absence(const Job& job) {
  if (!is_final(job.state)) {
    return "unknown, because the server was not reached";
  }
  const bool by_itself = job.state != JobState::killed && job.result;
  return fmt::format("ended ({})", by_itself ? job.result->describe() : state_text(job));
}

// "rank 3 on gpu-2 has ended (exit 1)", "ranks 2, 5 on gpu-2, gpu-3 have ended (exit 1)".
std::vector<std::string> absence_lines(const std::vector<Job>& absent) {
  std::vector<std::string> lines;
  for (const Group<std::string>& same : group_by(absent, [](const Job& job) {
         return std::optional(fmt::format("{} {}", job.rank ? "ranks" : "jobs", absence(job)));
       })) {
    std::vector<Job> jobs;
    std::vector<int> numbers;
    for (const std::size_t i : same.indices) {
      const Job& job = jobs.emplace_back(absent[i]);
      for (int rank = 0; rank < (job.rank ? ranks_of(job) : 1); ++rank) {
        numbers.push_back(job.rank ? *job.rank + rank : job.key);
      }
    }
    const bool one = numbers.size() == 1;
    const std::string what = jobs.front().rank ? "rank" : "job";
    const bool ended = is_final(jobs.front().state);
    lines.push_back(fmt::format("{} {} on {} {} {}", one ? what : what + "s", ranges(std::move(numbers)),
                                server_names(jobs), ended ? (one ? "has" : "have") : (one ? "is" : "are"),
                                absence(jobs.front())));
  }
  return lines;
}

std::string name_of(const RankStack& one) {
  return one.rank ? fmt::format("rank {}", *one.rank) : fmt::format("job {}", one.job.key);
}

// "rank 2 (node-2, job 7, pid 4121)", "ranks 0-1, 3 (node-1, node-2)".
std::string title_of(const std::vector<RankStack>& members) {
  if (members.size() == 1) {
    const RankStack& one = members.front();
    return fmt::format("{} ({}, job {}, pid {})", name_of(one), one.job.server, one.job.key, one.pid);
  }
  const bool are_ranks =
      std::ranges::all_of(members, [](const RankStack& one) { return one.rank.has_value(); });
  std::vector<int> numbers;
  std::vector<Job> jobs;
  for (const RankStack& one : members) {
    numbers.push_back(are_ranks ? *one.rank : one.job.key);
    jobs.push_back(one.job);
  }
  return fmt::format("{} {} ({})", are_ranks ? "ranks" : "jobs", ranges(std::move(numbers)),
                     server_names(jobs));
}

std::string group_text(const Context& context, const StackGroup& group, bool odd, bool all_threads) {
  std::string text =
      context.terminal.paint_out(odd ? ui::Style::red : ui::Style::bold, title_of(group.members));
  text += odd ? " is at a different place than the others:\n" : ":\n";
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

nlohmann::ordered_json all_json(const std::vector<StackGroup>& groups, const std::vector<RankStack>& without,
                                const std::vector<Job>& absent) {
  nlohmann::ordered_json all = {{"groups", nlohmann::ordered_json::array()},
                                {"without", nlohmann::ordered_json::array()},
                                {"absent", jobs_json(absent)}};
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
  return all;
}

void print(Context& context, bool all_threads, const std::vector<StackGroup>& groups,
           const std::vector<RankStack>& without, const std::vector<Job>& absent) {
  if (context.options.json) {
    context.print(all_json(groups, without, absent));
    return;
  }
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool odd = i + 1 < groups.size() && groups[i].members.size() < groups.back().members.size();
    text += (text.empty() ? "" : "\n") + group_text(context, groups[i], odd, all_threads);
  }
  // For processes without a stack for the same reason, shows the kernel's view of the first.
  const auto reasons = group_by(without, [](const RankStack& one) { return std::optional(one.why); });
  for (const Group<std::string>& reason : reasons) {
    std::vector<RankStack> members;
    for (const std::size_t i : reason.indices) {
      members.push_back(without[i]);
    }
    text += fmt::format("{}{}: no Python stack: {}\n", text.empty() ? "" : "\n", title_of(members),
                        visible_line(reason.key));
    if (members.size() > 1 && !members.front().kernel.empty()) {
      text += fmt::format("  of {} alone:\n", title_of({members.front()}));
    }
    for (const std::string& line : members.front().kernel) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  context.terminal.out(text);
}

// Jobs about which their server has not reported anything.
std::vector<Job> unheard(const std::vector<Job>& asked, const StacksResult& result) {
  std::vector<Job> jobs;
  for (Job job : asked) {
    const bool told =
        std::ranges::any_of(result.ranks, [&](const RankStack& one) { return one.job.id == job.id; }) ||
        std::ranges::find(result.ended, job.id, &Job::id) != result.ended.end();
    if (!told && std::ranges::find(result.errors, job.server, &Error::server) != result.errors.end()) {
      job.state = JobState::unknown;
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

int run_stacks(Context& context, const StacksArguments& arguments) {
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for servers with jobs");
  ChosenRanks chosen = choose_ranks(context.project(), "job-stacks", arguments.jobs);
  waiting->set("for " + server_names(chosen.jobs));
  const StacksResult result = context.project().stacks(chosen.jobs);
  waiting.reset();
  std::ranges::move(unheard(chosen.jobs, result), std::back_inserter(chosen.absent));
  const bool complete =
      std::ranges::all_of(chosen.absent, [](const Job& job) { return is_final(job.state); });
  for (const std::string& line : absence_lines(chosen.absent)) {
    context.terminal.notice(line);
  }
  std::vector<RankStack> without;
  std::ranges::copy_if(result.ranks, std::back_inserter(without),
                       [](const RankStack& one) { return one.threads.empty(); });
  print(context, arguments.threads, group_stacks(result.ranks, arguments.threads), without, chosen.absent);
  Lines ended;
  for (const Job& job : result.ended) {
    ended.add(job, "ended, or not started yet");
  }
  for (const std::string& line : ended.text()) {
    context.terminal.notice(line);
  }
  context.show(result.errors);
  // No Python advice for processes that are not Python; the server has already reported their kind.
  if (std::ranges::any_of(without, [](const RankStack& one) {
        return one.why.find("not a Python process") == std::string::npos;
      })) {
    context.terminal.notice(
        "for Python stacks: install py-spy in the environment on the servers (it needs permission to trace "
        "processes), or start the run with --enable-stacks");
  }
  return complete && without.empty() && result.errors.empty() && !result.ranks.empty() ? 0 : 1;
}

}  // namespace

void add_job_stacks(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_stacks);
  arguments.jobs.add(command, context, "Jobs with this tag (default: the newest running launch)");
  arguments.jobs.add_words(command, context);
  command.add_flag("--threads", arguments.threads, "Show all threads (default: the main thread)");
}

}  // namespace remote::cli
