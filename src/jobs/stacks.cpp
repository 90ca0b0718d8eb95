#include "jobs/stacks.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/places.hpp"
#include "jobs/protocol_parts.hpp"
#include "scripts/scripts.hpp"

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
  line.remove_prefix(begin.size());
  const std::size_t at = line.rfind(middle);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view file = line.substr(0, at);
  const std::string_view rest = line.substr(at + middle.size());
  const std::size_t in = rest.find(" in ");
  if (in == std::string_view::npos) {
    return std::nullopt;
  }
  return fmt::format("{} ({}:{})", rest.substr(in + 4), file, rest.substr(0, in));
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
    std::rotate(threads.begin(), threads.begin() + static_cast<std::ptrdiff_t>(main),
                threads.begin() + static_cast<std::ptrdiff_t>(main) + 1);
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

bool by_rank(const RankStack& a, const RankStack& b) {
  return std::tuple(a.rank.value_or(-1), a.job.key, a.pid) <
         std::tuple(b.rank.value_or(-1), b.job.key, b.pid);
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

servers::Action<StacksAnswer> stacks_action(const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::Action<StacksAnswer> action;
  action.what = "stacks of " + counted(ids.size(), "job");
  action.script = job_script(folder, "stacks.sh");
  action.script.call("stacks_begin");
  call_each(action.script, "stacks_one", ids);
  action.script.call("stacks_finish");
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

StacksResult read_stacks(const config::Config& config, ssh::Connector& connector,
                         const std::vector<Job>& jobs, const Cancel& cancel) {
  struct Entry {
    Job job;
    std::vector<ProcessDump> dumps;
  };
  StacksResult result;
  const auto entries = at_places(
      config, connector, jobs, result.errors, cancel, [&](ssh::Connection& connection, const JobsAt& place) {
        std::vector<ProcessDump> dumps =
            servers::run_action(connection, stacks_action(place.folder, place.ids()), cancel).dumps;
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
  std::sort(result.ranks.begin(), result.ranks.end(), by_rank);
  return result;
}

std::string enable_stacks_text(const std::string& jobs_folder) {
  // Runs in the project's folder. Whatever goes wrong here, the job runs: a ':' in the folder's name cannot
  // stand in PYTHONPATH.
  return fmt::format(
      "remote_stacks=$(pwd)/{}/$REMOTE_JOB_ID/python\n"
      "if case $remote_stacks in *:*) false ;; esac && (\n"
      "  umask 077 && mkdir -p \"$remote_stacks\" && printf '%s' {} >\"$remote_stacks/sitecustomize.py\"\n"
      "); then\n"
      "  PYTHONPATH=$remote_stacks${{PYTHONPATH:+:$PYTHONPATH}}\n"
      "  export PYTHONPATH\n"
      "else\n"
      "  echo 'remote: --enable-stacks is not possible in this folder' >&2\n"
      "fi\n"
      "unset remote_stacks\n",
      shell_quote(jobs_folder), shell_quote(std::string(scripts::text("sitecustomize.py"))));
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
    std::sort(group.members.begin(), group.members.end(), jobs::by_rank);
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const StackGroup& a, const StackGroup& b) {
    return a.members.size() != b.members.size() ? a.members.size() < b.members.size()
                                                : jobs::by_rank(a.members.front(), b.members.front());
  });
  return groups;
}

}  // namespace remote
