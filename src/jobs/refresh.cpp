#include "jobs/refresh.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/transitions.hpp"
#include "jobs/verdict.hpp"

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// The limit for an answer whose parts keep arriving.
constexpr milliseconds longest_answer{60'000};

// How long a server may take for its answer, and how long it may be silent meanwhile.
struct Limits {
  milliseconds whole{10'000};
  milliseconds silence{0};  // 0: like `whole`
};

// A server's answer, possibly without some jobs.
struct Answered {
  std::vector<Job> jobs;
  std::vector<bool> known;       // whether the answer contains them
  std::optional<Error> failure;  // why some are missing
};

// Whether Slurm's accounting may still report the job's usage, which it does some time after the job's end.
bool awaits_usage(const config::Config& config, const Job& job) {
  constexpr std::chrono::hours long_ago{1};
  return is_over(job) && !job.usage && job.started_at && job.ended_at && is_of_slurm(config, job) &&
         now_seconds() - *job.ended_at < long_ago;
}

// Queries the server without storing the answer. `await_lifeline`: see wire::StateRequest.
Answered question(ssh::Connection& connection, const Store& store, std::vector<Job> jobs, Limits limits,
                  bool await_lifeline, const Cancel& cancel) {
  Answered result{std::move(jobs), {}, std::nullopt};
  result.known.resize(result.jobs.size(), false);
  const AnyAgent agent(connection, cancel);
  for (const auto& [folder, indices] :
       group_by(result.jobs, [](const Job& job) { return std::optional(job.remote_folder); })) {
    StateQuestion state{.folder = folder, .ids = {}};
    for (const std::size_t i : indices) {
      const Job& job = result.jobs[i];
      state.ids.push_back(job.id);
      if (start_is_dead(store, job)) {
        state.claim.push_back(job.id);
      }
    }
    state.await_lifeline = await_lifeline;
    state.timeout = limits.whole;
    state.silence = limits.silence;
    state.keeps_partial = true;
    const ExactInstant asked = now_milliseconds();
    const StateAnswer answer = ask_state(agent, state);
    result.failure = answer.failure;
    if (!answer.time) {
      return result;
    }
    const Clocks clocks = clocks_of(*answer.time, asked, now_milliseconds());
    for (const std::size_t i : indices) {
      if (auto now = as_told(agent, result.jobs[i], answer, clocks, state.claim)) {
        result.jobs[i] = *std::move(now);
        result.known[i] = true;
      }
    }
    if (result.failure) {
      return result;
    }
  }
  return result;
}

constexpr milliseconds await_limit{5'000};  // the server waits four seconds at most

// Like question(), but throws the failure.
std::vector<Job> whole_answer(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                              Limits limits, bool await_lifeline, const Cancel& cancel) {
  Answered answered = question(connection, store, std::move(jobs), limits, await_lifeline, cancel);
  if (answered.failure) {
    throw *answered.failure;
  }
  return std::move(answered.jobs);
}

}  // namespace

std::optional<Error> save(Store& store, const std::vector<Job>& jobs) {
  try {
    store.update(jobs);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {  // or Interrupted, while waiting for the lock
    return Error("cannot write " + store.folder().string(), error.what()).mended_by(Remedy::list_jobs);
  }
  return std::nullopt;
}

bool start_is_dead(const Store& store, const Job& job) {
  return job.state == JobState::starting && store.starter_is_dead(start_id_of(job));
}

std::optional<Job> as_told(const AnyAgent& agent, const Job& job, const StateAnswer& answer,
                           const Clocks& clocks, const std::vector<JobId>& claim) {
  const wire::JobReport* report = answer.find(job.id);
  if (report == nullptr) {
    return std::nullopt;
  }
  const bool dead = std::ranges::find(claim, job.id) != claim.end();
  return with_failed_rank(agent, apply_status(job, *report, clocks, dead ? Starter::dead : Starter::alive));
}

std::vector<Job> ask_over(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                          const Cancel& cancel) {
  return whole_answer(connection, store, std::move(jobs), {}, false, cancel);
}

std::vector<Job> ask_with_lifeline(const Site& site, std::vector<Job> jobs) {
  const auto connection = site.connector.connect(server_of(site.config, jobs.front()), site.cancel);
  return whole_answer(*connection, site.store, std::move(jobs), {.whole = await_limit}, true, site.cancel);
}

News refresh(const Site& site, std::vector<Job> jobs, milliseconds patience) {
  using Place = std::pair<std::string, RemoteFolder>;
  const auto groups = group_by(jobs, [&](const Job& job) {
    // A lost job can reappear.
    const bool asked = job.state == JobState::lost ? in_reach(site.config, job)
                                                   : !is_over(job) || awaits_usage(site.config, job);
    return asked ? std::optional(Place(job.server, job.remote_folder)) : std::nullopt;
  });
  const auto outcomes = servers::fan_out(
      groups, [](const Group<Place>& group) { return group.key.first; },
      [&](const Group<Place>& group, std::size_t) {
        std::vector<Job> mine;
        for (const std::size_t i : group.indices) {
          mine.push_back(jobs[i]);
        }
        const config::Server& server = server_of(site.config, mine.front());
        const auto connection =
            site.connector.connect(server, site.cancel, std::chrono::ceil<std::chrono::seconds>(patience));
        const Limits limits{std::max(longest_answer, patience), patience};
        return question(*connection, site.store, std::move(mine), limits, false, site.cancel);
      });
  News news;
  news.jobs = std::move(jobs);
  const Instant now = now_seconds();
  std::vector<Job> answered;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // Jobs that are queried only for their usage do not need an answer.
    const bool needed = std::ranges::any_of(
        groups[g].indices, [&](std::size_t i) { return !awaits_usage(site.config, news.jobs[i]); });
    for (std::size_t k = 0; k < groups[g].indices.size(); ++k) {
      Job& job = news.jobs[groups[g].indices[k]];
      if (outcomes[g].ok() && (outcomes[g].value->known[k] || !outcomes[g].value->failure)) {
        job = outcomes[g].value->jobs[k];
        answered.push_back(job);
      } else {
        job = as_unanswered(job, now);
      }
    }
    if (!needed) {
      continue;
    }
    if (!outcomes[g].ok()) {
      news.silent.push_back(*outcomes[g].error);
    } else if (outcomes[g].value->failure) {
      news.silent.push_back(Error(*outcomes[g].value->failure).on(groups[g].key.first));
    }
  }
  // All jobs at once, and separate from the queries: a full disk does not mean that a server failed.
  news.unsaved = save(site.store, answered);
  return news;
}

}  // namespace remote::jobs
