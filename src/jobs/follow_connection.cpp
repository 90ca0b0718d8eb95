#include "jobs/follow_connection.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"
#include "jobs/verdict.hpp"
#include "servers/agent.hpp"

namespace remote::jobs {

using std::chrono::milliseconds;

namespace {

Error not_understood(const std::string& why) {
  return Error("the server's answer is not understood", why).mended_by(Remedy::tell_more);
}

}  // namespace

wire::FollowRequest Followed::request(const FollowOptions& options) const {
  wire::FollowRequest request{.place = to_place(job.remote_folder), .id = job.id.text()};
  request.follow = options.follow;
  request.wait_only = silent;
  request.rank = rank;
  if (positioned || (!options.lines && !options.since)) {
    request.out_offset = out_offset;
    request.err_offset = err_offset;
  } else {
    request.lines = options.lines;
    request.since = options.since;
  }
  return request;
}

void Followed::fail(const Error& error) {
  if (!failure) {
    failure.emplace(fmt::format("cannot follow job {}", job.key), error.message(), error.hint());
  }
}

void Followed::take(const wire::Reply& reply, ExactInstant now) {
  if (const auto* begins = std::get_if<wire::FollowBegins>(&reply)) {
    out_offset = begins->out_offset;
    err_offset = begins->err_offset;
    positioned = true;
    least_ahead = to_instant(begins->now) - now;
    most_ahead = to_instant(begins->now) - asked;
  } else if (const auto* ends = std::get_if<wire::FollowEnds>(&reply)) {
    // A slow reader receives it late, so this is a lower bound.
    least_ahead = std::max(least_ahead, to_instant(ends->now) - now);
    report = ends->job;
    if (report->id != job.id.text()) {
      fail(not_understood("it is about another job"));
    }
  } else if (const auto* refusal = std::get_if<wire::Refusal>(&reply)) {
    fail(servers::Refused(refusal->reason));
  } else {
    fail(not_understood("it does not fit the question"));
  }
}

void Followed::take(std::string_view data, const Output& output) {
  if (failure || data.empty()) {
    return;
  }
  const char which = data.front();
  data.remove_prefix(1);
  if (which != 1 && which != 2) {
    fail(not_understood("it has output of a third kind"));
    return;
  }
  (which == 1 ? out_offset : err_offset) += data.size();
  if (!data.empty()) {
    output(index, which == 1 ? ssh::Stream::out : ssh::Stream::err, data);
  }
}

void Followed::end() {
  if (!report) {
    fail(not_understood("it has no end"));
  }
}

// Clocks that may agree count as equal: see clocks_of().
Clocks Followed::clocks(ExactInstant now) const {
  const milliseconds ahead = std::max(least_ahead, std::min(milliseconds(0), most_ahead));
  return {std::chrono::floor<std::chrono::seconds>(now + ahead),
          std::chrono::floor<std::chrono::seconds>(now), ahead};
}

void FollowTask::fail(const std::string& server, const Error& error) {
  {
    const std::lock_guard lock(mutex);
    errors.push_back(error.on(server));
  }
  settle(server);
}

void FollowTask::settle(const std::string& server) {
  if (events.settled) {
    events.settled(server);
  }
}

void FollowTask::give_up(const std::string& server, const std::list<Followed>& waiting, const Error& why) {
  const Instant now = now_seconds();
  {
    const std::lock_guard lock(mutex);
    gone.push_back(server);
  }
  fail(server, why);
  for (const Followed& followed : waiting) {
    const Job unknown = as_unanswered(followed.job, now);
    {
      const std::lock_guard lock(mutex);
      jobs[followed.index] = unknown;
    }
    events.ended(followed.index, unknown);
  }
}

void FollowTask::done(const Followed& followed, const Job& now) {
  const std::optional<Error> unsaved = save(site.store, {now});
  {
    const std::lock_guard lock(mutex);
    jobs[followed.index] = now;
  }
  losses.ended(followed.index, now);
  events.ended(followed.index, now);
  if (unsaved) {
    fail(now.server, *unsaved);
  }
}

void FollowConnection::open(servers::Agent& agent, Followed& followed) {
  servers::Agent::Handlers handlers;
  handlers.message = [this, &followed](const wire::Reply& reply) {
    has_answered_ = true;
    followed.take(reply, now_milliseconds());
  };
  handlers.data = [this, &followed](std::string_view data) {
    heard_ = true;
    followed.take(data, task_.events.output);
  };
  handlers.end = [&followed] { followed.end(); };
  followed.asked = now_milliseconds();
  log_info(connection_.server(), "following job {} from byte {} on", followed.job.key,
           followed.out_offset + followed.err_offset);
  followed.stream = agent.open(followed.request(task_.options), std::move(handlers));
}

// Removes jobs that have ended, and those that cannot be followed.
void FollowConnection::settle(servers::Agent& agent) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Followed& followed = *at;
    if (followed.failure) {
      agent.close(followed.stream);
      task_.fail(followed.job.server, *followed.failure);
    } else if (followed.report) {
      const Job now =
          apply_status(followed.job, *followed.report, followed.clocks(now_milliseconds()), Starter::alive);
      task_.done(followed, with_failed_rank(agent, now));  // output of other jobs continues meanwhile
      agent.close(followed.stream);
    } else {
      ++at;
      continue;
    }
    at = jobs_.erase(at);
  }
}

void FollowConnection::follow_over(servers::Agent& agent) {
  constexpr milliseconds limit{60'000};
  constexpr milliseconds silence{60'000};  // the agent sends a keepalive every two seconds
  for (Followed& followed : jobs_) {
    open(agent, followed);
  }
  while (!jobs_.empty()) {
    agent.wait(limit, silence);
    settle(agent);
  }
}

// The delay grows with the number of agents that ended soon after their start.
void FollowConnection::retry_later() {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + milliseconds(std::min(100 * idle_rounds_, 2000));
  ssh::Pump pump(connection_, task_.site.cancel);
  for (milliseconds left{1}; left.count() > 0; left = std::chrono::ceil<milliseconds>(until - Clock::now())) {
    pump.wait(left);
  }
}

void FollowConnection::serve(bool& heard) {
  constexpr std::chrono::seconds long_enough{10};
  while (!jobs_.empty()) {
    heard_ = false;
    const auto begin = std::chrono::steady_clock::now();
    servers::Agent agent(connection_, task_.site.cancel);
    try {
      follow_over(agent);
    } catch (const ssh::Unreachable&) {
      heard = heard || heard_;
      throw;
    } catch (const ssh::TooManyChannels&) {
      throw;
    } catch (const Error& error) {
      heard = heard || heard_;
      const bool is_timeout = error.cause() == Cause::timeout;
      const bool has_answered =
          has_answered_ || std::ranges::any_of(jobs_, [](const Followed& one) { return one.positioned; });
      if (is_timeout && has_answered) {
        // The server answered before, so it will answer again: its storage may hang for a while.
        throw ssh::Unreachable(error.what_failed(), error.reason(), error.hint());
      }
      const bool was_of_use = heard_ || std::chrono::steady_clock::now() - begin > long_enough;
      idle_rounds_ = was_of_use ? 0 : idle_rounds_ + 1;
      const int most_attempts = agent.is_running() ? 30 : 3;
      if (is_timeout || !agent.has_ended() || idle_rounds_ >= most_attempts) {
        throw;
      }
      log_info(connection_.server(), "{}; it is started again", error.message());
    }
    if (!jobs_.empty()) {
      retry_later();
    }
  }
  heard = heard || heard_;
}

}  // namespace remote::jobs
