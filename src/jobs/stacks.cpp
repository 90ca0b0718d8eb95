#include "jobs/stacks.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_ids.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/keep_program.hpp"
#include "servers/python_env.hpp"

namespace remote::jobs {
namespace {

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

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
    std::sort(parts.begin() + 1, parts.end());  // because the order of threads varies
  }
  return join(parts, "\n\n");
}

auto order(const RankStack& rank) {
  return std::tuple(rank.rank.value_or(-1), rank.job.key, rank.pid);
}

// An agent (torchrun) is also a Python process, but not a rank. If a job has processes with ranks, the others
// are dropped.
void drop_agents(std::vector<wire::ProcessStack>& stacks) {
  std::map<std::string, bool> has_ranks;
  for (const wire::ProcessStack& stack : stacks) {
    has_ranks[stack.id] = has_ranks[stack.id] || stack.rank;
  }
  std::erase_if(stacks, [&](const wire::ProcessStack& stack) { return has_ranks[stack.id] && !stack.rank; });
}

// The stacks of the jobs' processes. For a Slurm login node, the nodes report them.
std::vector<wire::ProcessStack> stacks_at(ssh::Connection& connection, const config::Config& config,
                                          const JobsAt& place, const Cancel& cancel) {
  const config::Server& server = server_of(config, place.jobs.front());
  const std::string activate = servers::activation(config, server);
  const AnyAgent agent{connection, cancel};
  if (!server.slurm) {
    return ask_stacks(agent, place.folder, place.ids(), activate);
  }
  keep_program(agent, place.folder);  // the nodes run it
  std::vector<wire::ProcessStack> stacks;
  for (const JobId& id : place.ids()) {
    std::ranges::move(ask_stacks(agent, place.folder, {id}, activate), std::back_inserter(stacks));
  }
  return stacks;
}

}  // namespace

std::vector<wire::ProcessStack> ask_stacks(const AnyAgent& agent, const RemoteFolder& folder,
                                           const std::vector<JobId>& ids, const std::string& activate) {
  servers::AgentQuestion question;
  question.what = "stacks of " + counted(ids.size(), "job");
  question.request = wire::StacksRequest{to_place(folder), to_texts(ids), activate, server_program().digest};
  question.timeout = std::chrono::minutes(5);  // py-spy and the signal can take 23 s per process
  std::vector<wire::ProcessStack> stacks;
  agent.ask(question, [&](wire::Reply reply) {
    std::ranges::move(servers::take_reply<wire::StacksReply>(std::move(reply)).processes,
                      std::back_inserter(stacks));
  });
  return stacks;
}

StacksResult read_stacks(const Site& site, const std::vector<Job>& jobs) {
  struct Entry {
    Job job;
    std::vector<wire::ProcessStack> stacks;
  };
  StacksResult result;
  const auto entries =
      on_job_servers(site, jobs, result.errors, [&](ssh::Connection& connection, const JobsAt& place) {
        std::vector<wire::ProcessStack> stacks = stacks_at(connection, site.config, place, site.cancel);
        drop_agents(stacks);
        std::vector<Entry> found;
        for (const Job& job : place.jobs) {
          Entry& entry = found.emplace_back(Entry{job, {}});
          std::ranges::copy_if(stacks, std::back_inserter(entry.stacks),
                               [&](const wire::ProcessStack& stack) { return stack.id == job.id.text(); });
        }
        return found;
      });
  for (const Entry& entry : entries) {
    if (entry.stacks.empty()) {
      result.ended.push_back(entry.job);
    }
    for (const wire::ProcessStack& stack : entry.stacks) {
      result.ranks.push_back({entry.job, stack.pid, stack.rank ? stack.rank : entry.job.rank, stack.threads,
                              stack.why, stack.kernel});
    }
  }
  std::ranges::sort(result.ranks, {}, order);
  return result;
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
