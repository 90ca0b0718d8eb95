#include "jobs/start.hpp"

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "base/ranges.hpp"
#include "config/folder_id.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/link_tokens.hpp"
#include "jobs/refresh.hpp"
#include "jobs/start_jobs.hpp"
#include "servers/agent.hpp"
#include "servers/disk_hints.hpp"
#include "wire/json_text.hpp"
#include "wire/text.hpp"

namespace remote::jobs {
namespace {

using Batch = Group<std::string>;  // jobs of one server

StartRequest request_for(const NewJob& job) {
  StartRequest request{job.job.id, job.process};
  if (!job.init_file.empty()) {
    request.files.emplace_back("init_file", job.init_file + "\n");
  }
  if (!job.process.tree.empty()) {
    request.files.emplace_back("tree", job.process.tree + "\n");
  }
  if (job.notify) {
    wire::NotifySpec spec = *job.notify;
    spec.launch = std::to_string(job.job.key);
    request.files.emplace_back("notify", wire::to_json_bytes(spec) + "\n");
  }
  if (!job.mpi_hosts.empty()) {
    request.files.emplace_back("mpi_hosts", job.mpi_hosts);
  }
  if (!job.web.empty()) {
    request.files.emplace_back("web", job.web + "\n");
  }
  request.backend = *job.job.backend;
  if (request.backend != slurm_backend) {
    return request;
  }
  if (!job.batch.empty()) {
    request.files.emplace_back("batch.sh", job.batch);
  }
  if (job.process.container) {
    request.files.emplace_back("container",
                               "engine " + servers::engine_word(job.process.container->container) + "\n");
  }
  if (job.requeue) {
    request.files.emplace_back("requeue", "");
  }
  std::string after;
  for (const JobId& id : job.after) {
    after += id.text() + "\n";
  }
  if (!after.empty()) {
    request.files.emplace_back("after", after);
  }
  return request;
}

// Starts the jobs of one server. Throws Error if it is unknown whether any of them started.
std::vector<wire::StartedJob> start_on(ssh::Connection& connection, const std::vector<NewJob>& jobs,
                                       const Batch& batch, const std::optional<wire::LaunchSpec>& launch,
                                       const Cancel& cancel) {
  std::vector<StartRequest> requests;
  for (const std::size_t i : batch.indices) {
    StartRequest& request = requests.emplace_back(request_for(jobs[i]));
    if (launch && launch->restarts) {
      request.files.emplace_back(again_file, fmt::format("{} {}\n", launch->timeout_seconds,
                                                         wire::percent_encode(launch->servers.front().name)));
      if (jobs[i].job.spare) {
        request.files.emplace_back(spare_file, "");
      }
    }
  }
  const NewJob& first = jobs[batch.indices.front()];
  std::optional<wire::LaunchSpec> spec;
  if (launch &&
      std::ranges::find(launch->servers, batch.key, &wire::LaunchServer::name) != launch->servers.end()) {
    std::vector<Job> there;
    for (const std::size_t i : batch.indices) {
      there.push_back(jobs[i].job);
    }
    spec = spec_for(*launch, batch.key, there);
  }
  const StartOrder order{.folder = first.job.remote_folder,
                         .requests = std::move(requests),
                         .launch = std::move(spec),
                         .lease = first.lease};
  const auto refused = [&](const Error& error) {
    std::vector<wire::StartedJob> replies;
    for (const StartRequest& request : order.requests) {
      replies.push_back({.id = request.id.text(), .reason = error.reason()});
    }
    return replies;
  };
  try {
    return ask_start({connection, cancel}, order);
  } catch (const servers::Refused& error) {
    return refused(error);
  } catch (const ssh::TooManyChannels& error) {
    return refused(error);
  }
}

struct Refusal {
  std::string reason;
  bool can_wait = false;
  auto operator<=>(const Refusal&) const = default;
};

// The keys of jobs that one server did not start, by refusal.
using NotStarted = std::map<Refusal, std::vector<int>>;

// `check` tests the options of configs.yaml, but not those of a single start.
Error describe(const Refusal& refusal, const std::string& what, const std::string& server) {
  const std::string& reason = refusal.reason;
  if (reason.starts_with("sbatch: ")) {
    return Error(
        what, reason,
        fmt::format("resources of the cluster: remote run --server {} --cmd 'sinfo -o \"%P %l %G %f\"'",
                    server));
  }
  if (refusal.can_wait) {
    return Error(what, reason).mended_by(Remedy::wait_for_turn);
  }
  const std::string hint = servers::disk_hint(reason);
  return hint.empty() ? Error(what, reason).mended_by(Remedy::check_server) : Error(what, reason, hint);
}

// Removes the name of the job's folder, so that the reasons of several jobs can be compared.
std::string without_folder(std::string reason, const JobId& id) {
  const std::string folder = "/" + id.text();
  for (std::size_t at = reason.find(folder); at != std::string::npos; at = reason.find(folder)) {
    reason.erase(at, folder.size());
  }
  return reason;
}

void tell(const NotStarted& not_started, const std::string& server, std::vector<Error>& errors) {
  for (const auto& [refusal, keys] : not_started) {
    const std::string what = keys.size() == 1 ? fmt::format("job {} was not started", keys.front())
                                              : fmt::format("jobs {} were not started", ranges(keys));
    errors.push_back(describe(refusal, what, server).on(server));
  }
}

void apply(const wire::StartedJob& reply, Job& job, NotStarted& not_started) {
  if (reply.outcome == wire::StartOutcome::failed) {
    job.state = JobState::lost;
    job.reason = {.kind = JobReason::Kind::not_started, .text = reply.reason};
    not_started[{without_folder(reply.reason, job.id), reply.can_wait}].push_back(job.key);
    return;
  }
  job.pid = reply.pid;
  if (reply.outcome == wire::StartOutcome::exists) {
    return;  // nothing was started; `refresh` determines its state
  }
  job.checked_at = now_seconds();
  if (!reply.machine.empty()) {
    job.machine = reply.machine;
  }
  if (reply.outcome == wire::StartOutcome::queued) {
    job.state = JobState::queued;
    job.reason = {.kind = JobReason::Kind::waiting, .text = reply.reason};
    return;
  }
  job.state = JobState::running;
  job.started_at = job.checked_at;
}

// Applies the servers' replies to the jobs.
void take_replies(const std::vector<Batch>& batches, const auto& outcomes, StartResult& result) {
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (!outcomes[b].ok()) {
      const Error& error = *outcomes[b].error;
      result.errors.push_back(Error("it is unknown whether its jobs started", error.what(), error.hint())
                                  .mended_by(Remedy::list_jobs)
                                  .because(error.cause())
                                  .on(batches[b].key));
      continue;
    }
    NotStarted not_started;
    for (const std::size_t i : batches[b].indices) {
      const std::vector<wire::StartedJob>& replies = *outcomes[b].value;
      const auto reply = std::ranges::find(replies, result.jobs[i].id.text(), &wire::StartedJob::id);
      if (reply == replies.end()) {
        result.errors.push_back(
            Error(fmt::format("job {}: the server did not say whether it started", result.jobs[i].key),
                  "its answer names other jobs only")
                .mended_by(Remedy::list_jobs)
                .on(result.jobs[i].server));
      } else {
        apply(*reply, result.jobs[i], not_started);
      }
    }
    tell(not_started, batches[b].key, result.errors);
  }
}

}  // namespace

wire::LaunchSpec spec_for(const wire::LaunchSpec& launch, const std::string& server,
                          const std::vector<Job>& jobs) {
  wire::LaunchSpec spec = launch;
  spec.server = server;
  std::vector<std::string> names;
  std::ranges::transform(spec.servers, std::back_inserter(names), &wire::LaunchServer::name);
  spec.tokens = select_link_tokens(launch.tokens, names, server);
  for (const Job& job : jobs) {
    spec.jobs.push_back({job.id.text(), job.rank.value_or(0)});
  }
  if (server != spec.servers.front().name) {
    spec.activate.clear();
  }
  return spec;
}

void add_new(const config::Config& config, Store& store, std::vector<Job>& jobs) {
  const std::optional<JobId> folder = JobId::parse(config::find_folder_id(config));
  for (Job& job : jobs) {
    job.made_in = folder;
  }
  store.add(jobs);
}

StartResult start(const Site& site, std::vector<NewJob> new_jobs,
                  const std::optional<wire::LaunchSpec>& launch) {
  StartResult result;
  if (new_jobs.empty()) {
    return result;
  }
  const std::vector<Batch> batches =
      group_by(new_jobs, [](const NewJob& entry) { return std::optional(entry.job.server); });
  const auto name = [](const Batch& batch) { return batch.key; };
  // Connect before recording anything: nothing can start on an unreachable server.
  const auto connections = servers::fan_out(batches, name, [&](const Batch& batch, std::size_t) {
    return site.connector.connect(server_of(site.config, new_jobs[batch.indices.front()].job), site.cancel);
  });
  for (const auto& connection : connections) {
    if (!connection.ok()) {
      throw *connection.error;
    }
  }
  for (NewJob& entry : new_jobs) {
    entry.job.state = JobState::starting;
    entry.job.backend = entry.job.backend.value_or(std::string(local_backend));
    entry.job.created_at = now_seconds();
    result.jobs.push_back(entry.job);
  }
  const FileLock starting = site.store.hold_start(start_id_of(result.jobs.front()));
  add_new(site.config, site.store, result.jobs);
  for (std::size_t i = 0; i < new_jobs.size(); ++i) {
    new_jobs[i].job.key = result.jobs[i].key;
  }
  const auto outcomes = servers::fan_out(batches, name, [&](const Batch& batch, std::size_t index) {
    try {
      return start_on(**connections[index].value, new_jobs, batch, launch, site.cancel);
    } catch (const Interrupted&) {
      // Keep the answers of the other servers: the caller stops the jobs that have started.
      throw Error("interrupted", "").because(Cause::interrupted);
    }
  });
  take_replies(batches, outcomes, result);
  result.unsaved = save(site.store, result.jobs);
  return result;
}

}  // namespace remote::jobs
