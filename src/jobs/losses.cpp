#include <algorithm>

#include "jobs/follow_connection.hpp"

// Decides when to stop waiting for a server.

namespace remote::jobs {

Losses::Losses(const std::vector<Job>& jobs, const FollowOptions& options)
    : lost_after_(options.lost_after),
      grace_(options.loss_grace),
      one_launch_(jobs.size() + options.ended.size() > 1 && !jobs.empty() && jobs.front().launch) {
  const auto of_it = [&](const Job& job) { return job.launch == jobs.front().launch; };
  one_launch_ = one_launch_ && std::ranges::all_of(jobs, of_it) && std::ranges::all_of(options.ended, of_it);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (is_final(jobs[i].state)) {
      note(jobs[i], Clock::now());
    } else {
      running_.emplace(i, jobs[i].server);
    }
  }
  for (const Job& job : options.ended) {
    note(job, Clock::now());
  }
}

void Losses::note(const Job& job, Clock::time_point now) {
  if (job.reason.kind == JobReason::Kind::after_loss) {
    lost_.try_emplace(job.reason.text, now);
  }
  for (const Attempt& attempt : job.attempts) {
    for (const std::string& server : attempt.without) {
      lost_.try_emplace(server, now);
    }
  }
}

void Losses::ended(std::size_t index, const Job& job, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (is_final(job.state)) {
    running_.erase(index);
    last_end_ = now;
    note(job, now);
  }
}

void Losses::answers(const std::string& server) {
  const std::lock_guard lock(mutex_);
  silent_.erase(server);
}

bool Losses::gives_up(const std::string& server, Clock::time_point silent_since, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  silent_.insert(server);
  if (!one_launch_) {
    return false;
  }
  if (const auto found = lost_.find(server); found != lost_.end()) {
    return now - std::max(found->second, silent_since) >= grace_;
  }
  const bool others_ended =
      std::ranges::all_of(running_, [&](const auto& job) { return silent_.contains(job.second); });
  return others_ended && last_end_ >= silent_since && now - silent_since >= lost_after_ + grace_;
}

}  // namespace remote::jobs
