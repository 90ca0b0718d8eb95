// The leases of a launch: checks whether its servers have the resources, and whether they are free.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/ranges.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "jobs/launch_store.hpp"
#include "launch/host_filter.hpp"
#include "project/launch_attempt.hpp"
#include "project/lease.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

const Lease* lease_of(const FreshLeases& found, const Gpu& gpu) {
  const auto lease = std::ranges::find_if(found.leases, [&](const Lease& one) {
    return std::ranges::find(one.gpus, gpu.uuid) != one.gpus.end();
  });
  return lease == found.leases.end() ? nullptr : &*lease;
}

// "ada has leased 4, a process of bob uses 2"
std::string users_of_gpus(const FreshLeases& found) {
  std::map<std::string, int> leased;
  for (const Gpu& gpu : found.gpus) {
    if (const Lease* lease = lease_of(found, gpu)) {
      ++leased[lease->user];
    }
  }
  std::map<std::string, int> used;
  for (const Gpu& gpu : found.gpus) {
    std::set<std::string> users;
    for (const GpuProcess& process : gpu.processes) {
      users.insert(process.user);
    }
    for (const std::string& user : lease_of(found, gpu) == nullptr ? users : std::set<std::string>()) {
      ++used[user];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [user, count] : leased) {
    parts.push_back(fmt::format("{} has leased {}", user, count));
  }
  for (const auto& [user, count] : used) {
    parts.push_back(fmt::format("processes of {} use {}",
                                user.empty() ? "an unknown user" : visible_line(user, 60), count));
  }
  return join(parts, ", ");
}

std::string users_of_others(const FreshLeases& found, bool cpus) {
  std::map<std::string, std::uint64_t> leased;
  for (const Lease& lease : found.leases) {
    leased[lease.user] += cpus ? static_cast<std::uint64_t>(lease.cpus) : lease.memory;
  }
  std::vector<std::string> parts;
  for (const auto& [user, count] : leased) {
    if (count > 0) {
      parts.push_back(cpus ? fmt::format("{} has leased {}", user, count)
                           : fmt::format("{} has leased {} GiB", user, count / gibibyte));
    }
  }
  return join(parts, ", ");
}

// The missing amount of the first resource that is short; "" if none is. `there_is`: compare with all
// resources instead of the free ones.
std::string shortage(const LeaseRequest& wanted, const FreshLeases& found, bool there_is) {
  const auto missing = [&](const std::string& needed, auto want, auto free, auto all, const auto& text_of,
                           const std::string& users, auto server, const char* bound) -> std::string {
    if (want <= (there_is ? all : free)) {
      return "";
    }
    if (there_is) {
      return fmt::format("{} needed, and there {} {}{}", needed, all == 1 ? "is" : "are", text_of(all),
                         all < server ? fmt::format(" of {}: {}", text_of(server), bound) : "");
    }
    return fmt::format("{} needed, and {} of {} free{}{}", needed, text_of(free), text_of(all),
                       users.empty() ? "" : ": ", users);
  };
  const wire::FreeResources& free = found.free;
  const auto number = [](int count) { return std::to_string(count); };
  const auto gibi = [](std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(gibibyte));
  };
  const bool hidden = !free.hiding_variable.empty();
  const std::string bound = free.hiding_variable + " is set by the login";
  const auto gpus =
      missing(counted(static_cast<std::size_t>(wanted.gpus), "GPU"), wanted.gpus, free.gpus, free.all_gpus,
              number, users_of_gpus(found), hidden ? free.server_gpus : free.all_gpus, bound.c_str());
  const auto cpus =
      missing(counted(static_cast<std::size_t>(wanted.cpus), "core"), wanted.cpus, free.cpus, free.all_cpus,
              number, users_of_others(found, true), free.server_cpus, "quota of the control group");
  const auto memory =
      missing(gibi(wanted.memory) + " GiB of memory", wanted.memory, free.memory, free.all_memory, gibi,
              users_of_others(found, false), free.server_memory, "limit of the control group");
  return !gpus.empty() ? gpus : !cpus.empty() ? cpus : memory;
}

}  // namespace

std::optional<Error> lease_problem(const LeaseRequest& wanted, const FreshLeases& found) {
  if (const std::string missing = shortage(wanted, found, true); !missing.empty()) {
    return Error("cannot lease", missing, "ask for less, or leave the server out");
  }
  if (wanted.wait) {
    return std::nullopt;
  }
  if (const std::string missing = shortage(wanted, found, false); !missing.empty()) {
    return Error("cannot lease", missing).mended_by(Remedy::wait_for_turn);
  }
  const auto waiting = static_cast<std::size_t>(std::ranges::count(found.leases, true, &Lease::waits));
  if (waiting > 0) {
    return Error("cannot lease", fmt::format("{} for the free resources there",
                                             waiting == 1 ? "another launch waits"
                                                          : fmt::format("{} launches wait", waiting)))
        .mended_by(Remedy::wait_for_turn);
  }
  return std::nullopt;
}

void judge_lease(const LeaseRequest& wanted, const servers::FactsAnswer& answer, const std::string& server,
                 int times) {
  LeaseRequest all = wanted;
  all.gpus *= times;
  all.cpus *= times;
  all.memory *= static_cast<std::uint64_t>(times);
  const std::string silent = answer.leases.no_leases.empty() ? "the server did not report its free resources"
                                                             : answer.leases.no_leases;
  const std::optional<Error> problem =
      answer.leases.free
          ? lease_problem(all, {*answer.leases.free, answer.leases.leases, answer.facts.gpus.gpus})
          : std::optional(Error("cannot lease", silent).mended_by(Remedy::check_server));
  if (problem) {
    throw problem->on(server);
  }
}

Error name_holders(const Core& core, const Error& problem) {
  if (problem.remedy() != Remedy::wait_for_turn) {
    return problem;
  }
  const jobs::LaunchStore launches(core.store);
  std::set<JobId> seen;
  std::vector<int> keys;
  for (const Job& job : core.store.list({.unfinished_only = true}).jobs) {
    if (job.server != problem.server() || job.state != JobState::running || !job.launch ||
        !seen.insert(*job.launch).second) {
      continue;
    }
    const auto record = launches.read(*job.launch);
    if (record && record->request && record->request->lease.any()) {
      keys.push_back(record->first_key > 0 ? record->first_key : job.key);
    }
  }
  if (keys.empty()) {
    return problem;
  }
  const std::string which = keys.size() == 1 ? fmt::format("launch {} of this project has", keys.front())
                                             : fmt::format("launches {} of this project have", ranges(keys));
  return Error(problem.what_failed(), problem.reason(), which + " leases there", problem.kind())
      .mended_by(problem.remedy())
      .on(problem.server());
}

void check_lease(const LeaseRequest& lease, const Env& env, const std::string& what) {
  if (lease.wait && !lease.any()) {
    throw Error::usage(what, "there is nothing to wait for",
                       "give the resources that it needs: GPUs, cores or memory");
  }
  for (const std::string_view name : rules::visibility_variables) {
    if (lease.gpus > 0 && std::ranges::find(env, name, &Env::value_type::first) != env.end()) {
      throw Error::usage(what,
                         fmt::format("a lease chooses the GPUs, but the variable {} names some, too", name),
                         "keep one of the two");
    }
  }
}

void LaunchAttempt::check_lease() const {
  project::check_lease(request_.lease, with_set_variables(request_.env, request_.command), "launch");
}

// The GPUs of a server that may be leased; empty: all. `gpus`: those that its ranks see; nullptr: not yet
// known.
std::vector<int> LaunchAttempt::gpus_to_lease(const config::Server& server, const UsableGpus* gpus) const {
  const auto host = hosts_.find(server.name);
  if (host == hosts_.end() || host->second.gpus.empty() || (gpus == nullptr && host->second.without_gpus)) {
    return server.gpu_indices;
  }
  return gpus == nullptr ? host->second.gpus : launch::gpus_of(host->second, *gpus, server.gpu_indices);
}

// The servers of the launch that are the same machine as this one, because they share its leases and GPUs.
std::vector<std::string> LaunchAttempt::names_of_machine(std::size_t server) const {
  const auto has_same = [](const servers::FactsAnswer& one, const servers::FactsAnswer& other) {
    return !one.leases.pool.empty() && one.leases.pool == other.leases.pool &&
           std::ranges::equal(one.facts.gpus.gpus, other.facts.gpus.gpus, {}, &Gpu::uuid, &Gpu::uuid);
  };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i == server || has_same(answers_[i], answers_[server])) {
      names.push_back(servers_[i].name);
    }
  }
  return names;
}

void LaunchAttempt::judge_leases() {
  if (!request_.lease.any()) {
    return;
  }
  std::vector<Error> problems;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    project::check_lease(request_.lease, servers_[i].env, "cannot lease on " + servers_[i].name);
    const std::vector<std::string> names = names_of_machine(i);
    try {
      judge_lease(request_.lease, answers_[i], servers_[i].name, static_cast<int>(names.size()));
    } catch (const Error& problem) {
      problems.push_back(names.size() < 2 ? name_holders(core_, problem)
                                          : Error("cannot lease",
                                                  fmt::format("{} are one machine: {}", join(names, " and "),
                                                              problem.reason()),
                                                  problem.hint())
                                                .mended_by(problem.remedy())
                                                .on(servers_[i].name));
    }
  }
  if (problems.empty()) {
    return;
  }
  if (problems.size() == 1) {
    throw problems.front();
  }
  core_.tell(PartsFailed{problems});
  const bool would_wait = std::ranges::all_of(
      problems, [](const Error& problem) { return problem.remedy() == Remedy::wait_for_turn; });
  throw Error("nothing was started", "a launch leases on all of its servers or on none")
      .mended_by(would_wait ? Remedy::wait_for_turn : Remedy::none);
}

}  // namespace remote::project
