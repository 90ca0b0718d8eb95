#include "jobs/refresh.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "base/log.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "jobs/transitions.hpp"
#include "jobs/verdict.hpp"

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// How long an answer may take that does not stop coming.
constexpr milliseconds longest_answer{60'000};

// How long a server may take to answer, and may be silent meanwhile.
struct Limits {
  milliseconds whole{10'000};
  milliseconds silence{0};  // 0: as long as the whole
};

// What a server has said, though perhaps not of all jobs.
struct Answered {
  std::vector<Job> jobs;         // those that were asked about
  std::vector<bool> known;       // which of them it spoke of
  std::optional<Error> failure;  // why not of all
};

// Runs the action. What has come counts also where the rest does not come, which is `failure` then.
StatusAnswer run_in_pieces(ssh::Connection& connection, const servers::Action<StatusAnswer>& action,
                           std::optional<Error>& failure, const Cancel& cancel) {
  StatusAnswer answer;
  servers::AnswerReader reader = servers::reader_into(answer);
  try {
    servers::finish_answer(answer, reader, servers::run_script(connection, action, reader, cancel));
  } catch (const Error& error) {
    failure.emplace(error);
  }
  return answer;
}

// Whether Slurm's accounting may still tell what the job used; it lags behind the job's end.
bool awaits_usage(const config::Config& config, const Job& job) {
  constexpr std::chrono::hours long_ago{1};
  return is_over(job) && !job.usage && job.started_at && job.ended_at && is_of_slurm(config, job) &&
         now_seconds() - *job.ended_at < long_ago;
}

// Asks, and stores nothing.
Answered question(ssh::Connection& connection, const Store& store, std::vector<Job> jobs, Limits limits,
                  StatusAfter after, const Cancel& cancel) {
  Answered result{std::move(jobs), {}, std::nullopt};
  result.known.resize(result.jobs.size(), false);
  for (const auto& [folder, indices] :
       group_by(result.jobs, [](const Job& job) { return std::optional(job.remote_folder); })) {
    std::vector<JobId> ids;
    std::vector<JobId> claim;
    for (const std::size_t i : indices) {
      const Job& job = result.jobs[i];
      ids.push_back(job.id);
      if (start_is_dead(store, job)) {
        claim.push_back(job.id);
      }
    }
    auto action = status_action(folder, ids, claim, after);
    action.timeout = limits.whole;
    action.silence = limits.silence;
    const ExactInstant asked = now_milliseconds();
    const StatusAnswer answer = run_in_pieces(connection, action, result.failure, cancel);
    if (!answer.has_now()) {
      return result;
    }
    const Clocks clocks = clocks_of(answer, asked, now_milliseconds());
    for (const std::size_t i : indices) {
      if (auto now = as_told(connection, result.jobs[i], answer, clocks, claim, cancel)) {
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

constexpr milliseconds await_limit{5'000};  // the server itself waits four seconds at most

// The same, where only a whole answer will do.
std::vector<Job> whole_answer(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                              Limits limits, StatusAfter after, const Cancel& cancel) {
  Answered answered = question(connection, store, std::move(jobs), limits, after, cancel);
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
  } catch (const std::exception& error) {  // also Interrupted, while it waited for the lock
    return Error("cannot write " + store.folder().string(), error.what()).mended_by(Remedy::list_jobs);
  }
  return std::nullopt;
}

bool start_is_dead(const Store& store, const Job& job) {
  return job.state == JobState::starting && store.starter_is_dead(start_id_of(job));
}

std::optional<Job> as_told(ssh::Connection& connection, const Job& job, const StatusAnswer& answer,
                           const Clocks& clocks, const std::vector<JobId>& claim, const Cancel& cancel) {
  const StatusReply* reply = reply_about(job.id, answer.jobs);
  if (reply == nullptr) {
    return std::nullopt;
  }
  const bool dead = std::ranges::find(claim, job.id) != claim.end();
  return with_failed_rank(connection,
                          apply_status(job, *reply, clocks, dead ? Starter::dead : Starter::alive), cancel);
}

std::vector<Job> ask_over(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                          const Cancel& cancel) {
  return whole_answer(connection, store, std::move(jobs), {}, StatusAfter::nothing, cancel);
}

std::vector<Job> refresh_for_lifeline(const Site& site, std::vector<Job> jobs) {
  const auto connection = site.connector.connect(server_of(site.config, jobs.front()), site.cancel);
  jobs = whole_answer(*connection, site.store, std::move(jobs), {.whole = await_limit}, StatusAfter::start,
                      site.cancel);
  if (const auto unsaved = save(site.store, jobs)) {
    log_info(connection->server(), "{}", unsaved->message());  // the start has told that already
  }
  return jobs;
}

News refresh(const Site& site, std::vector<Job> jobs, milliseconds patience) {
  using Place = std::pair<std::string, RemoteFolder>;
  const auto groups = group_by(jobs, [&](const Job& job) {
    // a lost one may have been found again
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
        return question(*connection, site.store, std::move(mine), limits, StatusAfter::nothing, site.cancel);
      });
  News news;
  news.jobs = std::move(jobs);
  const Instant now = now_seconds();
  std::vector<Job> answered;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // What is asked about for its usage alone does not need an answer.
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
  // All at once, and apart from the asking: a disk that is full says nothing about the servers.
  news.unsaved = save(site.store, answered);
  return news;
}

}  // namespace remote::jobs
