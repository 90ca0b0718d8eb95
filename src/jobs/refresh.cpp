#include "jobs/refresh.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "jobs/places.hpp"
#include "jobs/protocol.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Asks, and stores nothing.
std::vector<Job> question(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                          milliseconds limit, bool await_lifeline, const Cancel& cancel) {
  for (const auto& [folder, indices] :
       group_by(jobs, [](const Job& job) { return std::optional(job.remote_folder); })) {
    std::vector<JobId> ids;
    std::vector<JobId> claim;
    for (const std::size_t i : indices) {
      ids.push_back(jobs[i].id);
      // Looked at before asking: a starter that dies later is found out the next time.
      if (jobs[i].state == JobState::starting && store.starter_is_dead(start_id_of(jobs[i]))) {
        claim.push_back(jobs[i].id);
      }
    }
    auto action = status_action(folder, ids, claim, await_lifeline);
    action.timeout = limit;
    const std::int64_t asked_ms = now_milliseconds();
    const StatusAnswer answer = servers::run_action(connection, action, cancel);
    const Clocks clocks = clocks_of(answer, asked_ms, now_milliseconds());
    for (const std::size_t i : indices) {
      if (const StatusReply* reply = reply_about(jobs[i].id, answer.jobs)) {
        const bool dead = std::ranges::find(claim, reply->id) != claim.end();
        jobs[i] = apply_status(jobs[i], *reply, clocks, dead ? Starter::dead : Starter::alive);
      }
    }
  }
  return jobs;
}

constexpr milliseconds usual_limit{10'000};
constexpr milliseconds await_limit{5'000};  // the server itself waits four seconds at most

}  // namespace

std::vector<Job> refresh_over(ssh::Connection& connection, Store& store, std::vector<Job> jobs,
                              const Cancel& cancel) {
  jobs = question(connection, store, std::move(jobs), usual_limit, false, cancel);
  store.update(jobs);
  return jobs;
}

std::vector<Job> refresh_for_lifeline(const config::Config& config, Store& store, ssh::Connector& connector,
                                      std::vector<Job> jobs, const Cancel& cancel) {
  const auto connection = connector.connect(server_of(config, jobs.front()), cancel);
  jobs = question(*connection, store, std::move(jobs), await_limit, true, cancel);
  store.update(jobs);
  return jobs;
}

News refresh(const config::Config& config, Store& store, ssh::Connector& connector, std::vector<Job> jobs,
             milliseconds limit, const Cancel& cancel) {
  using Place = std::pair<std::string, RemoteFolder>;
  const auto groups = group_by(jobs, [&](const Job& job) {
    // a lost one may have been found again
    const bool asked = job.state == JobState::lost ? in_reach(config, job) : !is_final(job.state);
    return asked ? std::optional(Place(job.server, job.remote_folder)) : std::nullopt;
  });
  const auto outcomes = servers::fan_out(
      groups, [](const Group<Place>& group) { return group.key.first; },
      [&](const Group<Place>& group, std::size_t) {
        const auto begin = clock::now();
        std::vector<Job> mine;
        for (const std::size_t i : group.indices) {
          mine.push_back(jobs[i]);
        }
        const auto connection = connector.connect(server_of(config, mine.front()), cancel,
                                                  std::chrono::ceil<std::chrono::seconds>(limit));
        const auto left = limit - std::chrono::duration_cast<milliseconds>(clock::now() - begin);
        return question(*connection, store, std::move(mine), std::max(left, milliseconds(200)), false,
                        cancel);
      });
  News news;
  news.jobs = std::move(jobs);
  const std::int64_t now = now_seconds();
  std::vector<Job> answered;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t k = 0; k < groups[g].indices.size(); ++k) {
      Job& job = news.jobs[groups[g].indices[k]];
      job = outcomes[g].ok() ? (*outcomes[g].value)[k] : as_unanswered(job, now);
      if (outcomes[g].ok()) {
        answered.push_back(job);
      }
    }
    if (!outcomes[g].ok()) {
      news.silent.push_back(*outcomes[g].error);
    }
  }
  // All at once, and apart from the asking: a disk that is full says nothing about the servers.
  try {
    store.update(answered);
  } catch (const Error& error) {
    news.unsaved.emplace(error);
  }
  return news;
}

}  // namespace remote::jobs
