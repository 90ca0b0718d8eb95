#include "jobs/stacks.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "servers/python_env.hpp"
#include "servers/shell_text.hpp"

namespace remote::jobs {
namespace {

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// `  File "/a/train.py", line 12 in forward` of faulthandler as py-spy has it: "forward (/a/train.py:12)".
std::optional<std::string> faulthandler_frame(std::string_view line) {
  constexpr std::string_view begin = "  File \"";
  constexpr std::string_view middle = "\", line ";
  if (!line.starts_with(begin)) {
    return std::nullopt;
  }
  const std::size_t at = line.rfind(middle);
  const std::size_t in = at == std::string_view::npos ? at : line.find(" in ", at);
  if (in == std::string_view::npos || at < begin.size()) {
    return std::nullopt;
  }
  const std::string_view file = line.substr(begin.size(), at - begin.size());
  const std::size_t number = at + middle.size();
  return fmt::format("{} ({}:{})", line.substr(in + 4), file, line.substr(number, in - number));
}

std::vector<ThreadStack> faulthandler_threads(const std::vector<std::string>& lines) {
  std::vector<ThreadStack> threads;
  for (const std::string& line : lines) {
    if (line.find("(most recent call first):") != std::string::npos) {
      threads.push_back({line.substr(0, line.find(" (most recent")), {}});
    } else if (!threads.empty()) {
      if (auto frame = faulthandler_frame(line)) {
        threads.back().frames.push_back(std::move(*frame));
      } else if (!trim(line).empty()) {
        threads.back().frames.emplace_back(trim(line));  // "...": cut; "<no Python frame>"
      }
    }
  }
  // faulthandler writes the newest thread first: the main one stands last.
  std::reverse(threads.begin(), threads.end());
  if (!threads.empty()) {
    threads.front().name = "main thread";
  }
  return threads;
}

std::vector<ThreadStack> py_spy_threads(const std::vector<std::string>& lines, int pid) {
  std::vector<ThreadStack> threads;
  std::size_t main = 0;
  for (const std::string& line : lines) {
    if (line.starts_with("Thread ")) {
      if (line.find("\"MainThread\"") != std::string::npos ||
          line.starts_with(fmt::format("Thread {} ", pid))) {
        main = threads.size();
      }
      threads.push_back({line, {}});
    } else if (!threads.empty() && line.starts_with("    ")) {
      threads.back().frames.emplace_back(trim(line));
    }
  }
  if (!threads.empty()) {
    const auto at = threads.begin() + static_cast<std::ptrdiff_t>(main);
    std::rotate(threads.begin(), at, at + 1);
  }
  return threads;
}

// What makes two stacks equal.
std::string key_of(const RankStack& rank, bool all_threads) {
  std::vector<std::string> parts;
  for (std::size_t t = 0; t < (all_threads ? rank.threads.size() : 1); ++t) {
    std::string part;
    for (const std::string& frame : rank.threads[t].frames) {
      const std::size_t open = frame.rfind(" (");
      const std::size_t name = open == std::string::npos ? 0 : open + 2;
      part += fmt::format("{}({}\n", frame.substr(0, name), file_name(std::string_view(frame).substr(name)));
    }
    parts.push_back(std::move(part));
  }
  if (!parts.empty()) {
    std::sort(parts.begin() + 1, parts.end());  // threads begin in any order
  }
  return join(parts, "\n\n");
}

auto order(const RankStack& rank) {
  return std::tuple(rank.rank.value_or(-1), rank.job.key, rank.pid);
}

// An agent (torchrun) is Python too, but no rank: where a job has processes with ranks, those without are
// left out.
void drop_agents(std::vector<ProcessDump>& dumps) {
  std::map<JobId, bool> has_ranks;
  for (const ProcessDump& dump : dumps) {
    has_ranks[dump.id] = has_ranks[dump.id] || dump.rank;
  }
  std::erase_if(dumps, [&](const ProcessDump& dump) { return has_ranks[dump.id] && !dump.rank; });
}

}  // namespace

servers::Action<StacksAnswer> stacks_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::string& activate) {
  servers::Action<StacksAnswer> action;
  action.what = "stacks of " + counted(ids.size(), "job");
  action.script = job_script(folder, "actions/stacks.sh");
  action.script.set("activate", activate).call("stacks_begin");
  call_each(action.script, "stacks_one", ids);
  action.script.call("say", {"end"});
  action.timeout = std::chrono::minutes(5);  // py-spy and the signal may take 23 s a process
  return action;
}

void StacksAnswer::take(servers::AnswerLine& line) {
  using Method = ProcessDump::Method;
  if (line.kind() == "ended") {
    id_word(line);
    line.end();
    return;
  }
  if (line.kind() == "line") {
    const int pid = line.pid();
    const std::string_view text = line.rest();
    if (dumps.empty() || pid != dumps.back().pid || !text.starts_with('|')) {
      line.refuse("a line of nothing");
    }
    dumps.back().lines.emplace_back(text.substr(1));
    return;
  }
  if (line.kind() != "process") {
    line.refuse_kind();
  }
  ProcessDump dump;
  dump.id = id_word(line);
  dump.pid = line.pid();
  if (const std::string_view rank = line.word(); rank != "-") {
    dump.rank = line.number_in(rank, 0);
  }
  dump.method = line.choice<Method>(
      line.word(),
      {{"py-spy", Method::py_spy}, {"faulthandler", Method::faulthandler}, {"kernel", Method::kernel}},
      "an unknown method");
  dump.why = line.rest();
  dumps.push_back(std::move(dump));
}

std::vector<ThreadStack> parse_threads(const ProcessDump& dump) {
  switch (dump.method) {
    case ProcessDump::Method::py_spy:
      return py_spy_threads(dump.lines, dump.pid);
    case ProcessDump::Method::faulthandler:
      return faulthandler_threads(dump.lines);
    case ProcessDump::Method::kernel:
      break;
  }
  return {};
}

namespace {

// What a server tells of the jobs' processes, or on a login node of Slurm, what the jobs' own nodes tell.
std::vector<ProcessDump> dumps_at(ssh::Connection& connection, const config::Config& config,
                                  const JobsAt& place, const Cancel& cancel) {
  const config::Server& server = server_of(config, place.jobs.front());
  const std::string activate = servers::activation(config, server);
  if (!server.slurm) {
    return servers::run_action(connection, stacks_action(place.folder, place.ids(), activate), cancel).dumps;
  }
  std::vector<ProcessDump> dumps;
  for (const Job& job : place.jobs) {
    auto action = stacks_action(place.folder, {job.id}, activate);
    const std::string inner = action.script.input();
    action.script = job_script(place.folder, "actions/slurm_stacks.sh");
    action.script.set("inner", inner).call("look_for_room").call("stacks_on_nodes", {job.id.text()});
    action.script.call("say", {"end"});
    std::ranges::move(servers::run_action(connection, action, cancel).dumps, std::back_inserter(dumps));
  }
  return dumps;
}

}  // namespace

StacksResult read_stacks(const Site& site, const std::vector<Job>& jobs) {
  struct Entry {
    Job job;
    std::vector<ProcessDump> dumps;
  };
  StacksResult result;
  const auto entries =
      on_job_servers(site, jobs, result.errors, [&](ssh::Connection& connection, const JobsAt& place) {
        std::vector<ProcessDump> dumps = dumps_at(connection, site.config, place, site.cancel);
        drop_agents(dumps);
        std::vector<Entry> found;
        for (const Job& job : place.jobs) {
          Entry& entry = found.emplace_back(Entry{job, {}});
          std::ranges::copy_if(dumps, std::back_inserter(entry.dumps),
                               [&](const ProcessDump& dump) { return dump.id == job.id; });
        }
        return found;
      });
  for (const Entry& entry : entries) {
    if (entry.dumps.empty()) {
      result.ended.push_back(entry.job);
    }
    for (const ProcessDump& dump : entry.dumps) {
      result.ranks.push_back(
          {entry.job, dump.pid, dump.rank ? dump.rank : entry.job.rank, parse_threads(dump), dump.why,
           dump.method == ProcessDump::Method::kernel ? dump.lines : std::vector<std::string>()});
    }
  }
  std::ranges::sort(result.ranks, {}, order);
  return result;
}

std::string enable_stacks_text(const std::string& jobs_folder, bool is_torch_agent) {
  std::vector<std::string> words{jobs_folder};
  if (is_torch_agent) {
    words.emplace_back("agent");
  }
  return servers::shell_text(servers::Script().add("lib/enable_stacks.sh").call("enable_stacks", words));
}

}  // namespace remote::jobs

namespace remote {

std::vector<StackGroup> group_stacks(const std::vector<RankStack>& ranks, bool all_threads) {
  std::map<std::string, StackGroup> by_key;
  for (const RankStack& rank : ranks) {
    if (!rank.threads.empty()) {
      by_key[jobs::key_of(rank, all_threads)].members.push_back(rank);
    }
  }
  std::vector<StackGroup> groups;
  for (auto& [key, group] : by_key) {
    std::ranges::sort(group.members, {}, jobs::order);
    groups.push_back(std::move(group));
  }
  std::ranges::sort(groups, {}, [](const StackGroup& group) {
    return std::pair(group.members.size(), jobs::order(group.members.front()));
  });
  return groups;
}

}  // namespace remote
