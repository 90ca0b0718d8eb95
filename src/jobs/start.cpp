#include "jobs/start.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "base/ranges.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"

namespace remote::jobs {
namespace {

using Batch = Group<std::string>;  // of one server

// What a launch has leased on some of its servers goes back when it lacks the others for so long.
constexpr int lease_complete_s = 60;

StartRequest request_for(const NewJob& job) {
  StartRequest request{job.job.id, job.process};
  if (!job.init_file.empty()) {
    request.files.emplace_back("init_file", job.init_file + "\n");
  }
  if (!job.process.tree.empty()) {
    request.files.emplace_back("tree", job.process.tree + "\n");
  }
  request.backend = *job.job.backend;
  if (request.backend != slurm_backend) {
    return request;
  }
  request.files.emplace_back("slurm_job.sh", slurm_job_program());
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

// One server's part of the start: its script, and its answer. Throws Error where it is not known whether
// something started.
std::vector<StartReply> start_on(ssh::Connection& connection, const std::vector<NewJob>& jobs,
                                 const Batch& batch, const Lifeline* lifeline, const Cancel& cancel) {
  std::vector<StartRequest> requests;
  for (const std::size_t i : batch.indices) {
    requests.push_back(request_for(jobs[i]));
  }
  if (lifeline != nullptr && lifeline->restarts > 0) {
    for (StartRequest& request : requests) {
      request.files.emplace_back(
          again_file, fmt::format("{} {}\n", lifeline->timeout_s, percent_encode(lifeline->servers.front())));
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (jobs[batch.indices[i]].job.spare) {
        requests[i].files.emplace_back(spare_file, "");
      }
    }
  }
  std::string lifeline_text;
  std::string activate;
  if (lifeline != nullptr && std::ranges::find(lifeline->servers, batch.key) != lifeline->servers.end()) {
    std::vector<Job> there;
    for (const std::size_t i : batch.indices) {
      there.push_back(jobs[i].job);
    }
    lifeline_text = lifeline_request(*lifeline, batch.key, there);
    if (const auto found = lifeline->activate.find(batch.key); found != lifeline->activate.end()) {
      activate = found->second;
    }
    if (!lifeline->news.empty() && batch.key == lifeline->servers.front()) {
      requests.front().files.emplace_back("notify",
                                          fmt::format("{}key {}\n", lifeline->news, jobs.front().job.key));
    }
  }
  const NewJob& first = jobs[batch.indices.front()];
  const auto action = start_action(first.job.remote_folder, requests, lifeline_text,
                                   activate.empty() ? first.lease_activate : activate, first.lease);
  const auto refused = [&](const Error& error) {
    std::vector<StartReply> replies;
    for (const StartRequest& request : requests) {
      replies.push_back({request.id, StartReply::Outcome::failed, std::nullopt, error.reason()});
    }
    return replies;
  };
  try {
    return servers::run_action(connection, action, cancel).jobs;
  } catch (const servers::Refused& error) {
    return refused(error);
  } catch (const ssh::TooManyChannels& error) {
    return refused(error);
  }
}

// Jobs that one server did not start: the keys by the reason.
using NotStarted = std::map<std::string, std::vector<int>>;

// The reason without the name of the job's folder, so that those of several jobs can be compared.
std::string without_folder(std::string reason, const JobId& id) {
  const std::string folder = "/" + id.text();
  for (std::size_t at = reason.find(folder); at != std::string::npos; at = reason.find(folder)) {
    reason.erase(at, folder.size());
  }
  return reason;
}

void tell(const NotStarted& not_started, const std::string& server, std::vector<Error>& errors) {
  for (const auto& [reason, keys] : not_started) {
    const std::string what = keys.size() == 1 ? fmt::format("job {} was not started", keys.front())
                                              : fmt::format("jobs {} were not started", ranges(keys));
    // `check` tries the options of configs.yaml, and not those of one start.
    errors.push_back(
        (reason.starts_with("sbatch: ")
             ? Error(what, reason,
                     fmt::format(
                         "what the cluster has: remote run --server {} --cmd 'sinfo -o \"%P %l %G %f\"'",
                         server))
             : Error(what, reason).mended_by(Remedy::check_server))
            .on(server));
  }
}

void apply(const StartReply& reply, Job& job, NotStarted& not_started) {
  if (reply.outcome == StartReply::Outcome::failed) {
    job.state = JobState::lost;
    job.reason = {.kind = JobReason::Kind::not_started, .text = reply.reason};
    not_started[without_folder(reply.reason, job.id)].push_back(job.key);
    return;
  }
  job.pid = reply.pid;
  if (reply.outcome == StartReply::Outcome::exists) {
    return;  // nothing was started: what became of it is for `refresh` to find out
  }
  job.checked_at = now_seconds();
  if (reply.outcome == StartReply::Outcome::queued) {
    job.state = JobState::queued;
    job.reason = {.kind = JobReason::Kind::waiting, .text = reply.reason};
    return;
  }
  job.state = JobState::running;
  job.started_at = job.checked_at;
}

// What the servers said of the jobs that were sent to them.
void take_replies(const std::vector<Batch>& batches, const auto& outcomes, StartResult& result) {
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (!outcomes[b].ok()) {
      const Error& error = *outcomes[b].error;
      result.errors.push_back(Error("it is not known whether its jobs started", error.what(), error.hint())
                                  .mended_by(Remedy::list_jobs)
                                  .because(error.cause())
                                  .on(batches[b].key));
      continue;
    }
    NotStarted not_started;
    for (const std::size_t i : batches[b].indices) {
      const StartReply* reply = reply_about(result.jobs[i].id, *outcomes[b].value);
      if (reply == nullptr) {
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

std::string lifeline_request(const Lifeline& lifeline, const std::string& server,
                             const std::vector<Job>& jobs_there) {
  std::string request = fmt::format("token {}\nserver {}\naddress {}\nport {}\ngrace {}\ntimeout {}\nservers",
                                    lifeline.token, percent_encode(server), percent_encode(lifeline.address),
                                    lifeline.port, lifeline.grace_s, lifeline.timeout_s);
  for (const std::string& name : lifeline.servers) {
    request += ' ' + percent_encode(name);
  }
  if (lifeline.whole) {
    request += "\nwhole 1";
  }
  if (lifeline.leave) {
    request += "\nleave 1";
  }
  if (!lifeline.news.empty()) {
    request += "\nnews 1";
  }
  if (lifeline.hang_s > 0) {
    request += fmt::format("\nhang {} {}", lifeline.hang_s, to_string(lifeline.on_hang));
  }
  if (lifeline.needed > 0) {
    request += fmt::format("\nneeded {}", lifeline.needed);
  }
  if (lifeline.restarts > 0) {
    std::vector<std::string_view> causes;
    std::ranges::transform(lifeline.restart_on, std::back_inserter(causes),
                           [](RestartCause cause) { return to_string(cause); });
    request += fmt::format("\nagain {} {} {}\ncounts", lifeline.restarts, lifeline.least,
                           causes.empty() ? "any" : fmt::format("{}", fmt::join(causes, ",")));
    for (const int count : lifeline.ranks) {
      request += fmt::format(" {}", count);
    }
    if (!lifeline.no_restart_exit.empty()) {
      request += fmt::format("\nfinal {}", fmt::join(lifeline.no_restart_exit, " "));
    }
    if (lifeline.spares > 0) {
      request += fmt::format("\nspares {}", lifeline.spares);
    }
    request += lifeline.agents ? "\nagents 1" : "";
    request += lifeline.checkpoint.empty() ? "" : "\ncheckpoint";
    for (const std::string& word : lifeline.checkpoint) {
      request += ' ' + percent_encode(word);
    }
  }
  if (lifeline.queue) {
    request += fmt::format("\nqueue {}", lease_complete_s);
  }
  if (!lifeline.mpi_hosts.empty()) {
    request += "\nmpi";
    for (const auto& [host, name] : lifeline.mpi_hosts) {
      request += fmt::format(" {} {}", percent_encode(host), percent_encode(name));
    }
  }
  request += "\njobs";
  for (const Job& job : jobs_there) {
    request += fmt::format(" {} {}", job.id.text(), job.rank.value_or(0));
  }
  return request;
}

StartResult start(const Site& site, std::vector<NewJob> new_jobs, const Lifeline* lifeline) {
  StartResult result;
  if (new_jobs.empty()) {
    return result;
  }
  const std::vector<Batch> batches =
      group_by(new_jobs, [](const NewJob& entry) { return std::optional(entry.job.server); });
  const auto name = [](const Batch& batch) { return batch.key; };
  // Before anything is recorded: where a server is not reached, nothing can have started.
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
  site.store.add(result.jobs);
  for (std::size_t i = 0; i < new_jobs.size(); ++i) {
    new_jobs[i].job.key = result.jobs[i].key;
  }
  const auto outcomes = servers::fan_out(batches, name, [&](const Batch& batch, std::size_t index) {
    try {
      return start_on(**connections[index].value, new_jobs, batch, lifeline, site.cancel);
    } catch (const Interrupted&) {
      // What the other servers answered must be kept: the caller ends what has started.
      throw Error("interrupted", "").because(Cause::interrupted);
    }
  });
  take_replies(batches, outcomes, result);
  result.unsaved = save(site.store, result.jobs);
  return result;
}

}  // namespace remote::jobs
