#include "jobs/follow_connection.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"
#include "jobs/verdict.hpp"
#include "ssh/program_channel.hpp"

namespace remote::jobs {

using std::chrono::milliseconds;

FollowRequest Followed::request(const FollowOptions& options) const {
  FollowRequest request;
  request.id = job.id;
  request.follow = options.follow;
  request.wait_only = silent;
  request.rank = rank;
  if (positioned || (!options.lines && !options.since)) {
    request.out_offset = out.offset;
    request.err_offset = err.offset;
  } else {
    request.lines = options.lines;
    request.since = options.since;
  }
  return request;
}

void Followed::take(ssh::Stream which, std::string_view data, const Output& output) {
  if (failure) {
    return;
  }
  StreamState& stream = which == ssh::Stream::out ? out : err;
  StreamState& other = which == ssh::Stream::out ? err : out;
  const auto begins = [&](std::string_view line) {
    const auto offsets = parse_follow(line);
    if (offsets) {
      stream.offset = which == ssh::Stream::out ? offsets->first : offsets->second;
      if (!positioned && !other.begun()) {
        // Whichever header comes first positions both, so that a link that breaks right now resumes there.
        other.offset = which == ssh::Stream::out ? offsets->second : offsets->first;
      }
    }
    return offsets.has_value();
  };
  try {
    data = stream.greeting.strip(data, begins);
  } catch (const Error& error) {
    failure.emplace(fmt::format("cannot follow job {}", job.key), error.message(), error.hint());
    return;
  }
  if (!data.empty()) {
    stream.offset += data.size();
    output(index, which, data);
  }
}

void Followed::begin_anew() {
  positioned = answered();
  out.greeting = {};
  err.greeting = {};
}

std::unique_ptr<Followed> WaitingJobs::next() {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty()) {
    return nullptr;
  }
  std::unique_ptr<Followed> followed = std::move(jobs_.front());
  jobs_.pop_front();
  return followed;
}

std::size_t WaitingJobs::refuse(std::unique_ptr<Followed> followed) {
  const std::lock_guard lock(mutex_);
  jobs_.push_front(std::move(followed));
  return jobs_.size();
}

void WaitingJobs::give_back(std::unique_ptr<Followed> followed) {
  followed->begin_anew();
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(followed));
}

bool WaitingJobs::empty() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
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

void FollowTask::give_up(const std::string& server, WaitingJobs& waiting, const Error& why) {
  const Instant now = now_seconds();
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    first = std::ranges::find(gone, server) == gone.end();
    if (first) {
      gone.push_back(server);
    }
  }
  if (first) {
    fail(server, why);
  }
  while (const auto followed = waiting.next()) {
    const Job unknown = as_unanswered(followed->job, now);
    {
      const std::lock_guard lock(mutex);
      jobs[followed->index] = unknown;
    }
    events.ended(followed->index, unknown);
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

FollowConnection::Open FollowConnection::open_one(Followed& followed) {
  Open open;
  const std::string request = follow_script(followed.job.remote_folder, followed.request(task_.options));
  open.begin = followed.bytes();
  log_info(connection_.server(), "following job {} from byte {} on", followed.job.key, open.begin);
  open.flow = ssh::open_program(pump_, request, [this, &followed](ssh::Stream stream, std::string_view data) {
    followed.take(stream, data, task_.events.output);
  });
  return open;
}

// Opens channels for the jobs that wait; returns how many wait still because the server refuses more.
std::size_t FollowConnection::open_waiting() {
  for (;;) {
    std::unique_ptr<Followed> next = waiting_.next();
    if (!next) {
      return 0;
    }
    try {
      Open one = open_one(*next);
      one.followed = std::move(next);
      open_.push_back(std::move(one));
    } catch (const ssh::TooManyChannels&) {
      return waiting_.refuse(std::move(next));
    } catch (const ssh::Unreachable&) {
      waiting_.give_back(std::move(next));
      throw;
    } catch (const Error& error) {
      task_.fail(next->job.server, error);
    }
  }
}

// For a job that has to be opened again: waits a while where no new byte has come, while the others' output
// goes on. Returns false, as finish() does.
bool FollowConnection::again(Followed& followed, bool progress) {
  using clock = std::chrono::steady_clock;
  followed.idle_rounds = progress ? 0 : followed.idle_rounds + 1;
  const auto until = clock::now() + milliseconds(std::min(100 * followed.idle_rounds, 2000));
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - clock::now());
    if (left.count() <= 0) {
      return false;
    }
    pump_.wait(left);
  }
}

// What the server says of a job; nullopt when it refuses the channel for the question.
std::optional<StatusAnswer> FollowConnection::ask(const Followed& followed) {
  StatusAnswer answer;
  servers::AnswerReader reader = servers::reader_into(answer);
  ExecResult ended;
  try {
    ended = servers::run_script(connection_, status_action(followed.job.remote_folder, {followed.job.id}, {}),
                                reader, task_.site.cancel);
  } catch (const ssh::Unreachable&) {
    throw;
  } catch (const ssh::TooManyChannels&) {
    return std::nullopt;
  } catch (const Error& error) {
    throw ssh::Unreachable(error.what_failed(), error.reason());  // silence is a link to be made anew
  }
  servers::finish_answer(answer, reader, ended);
  if (answer.jobs.size() != 1) {
    throw Error(fmt::format("cannot follow job {}", followed.job.key), "the server does not know it")
        .mended_by(Remedy::list_jobs);
  }
  return answer;
}

// A channel came to its end. True when the job is done with; false when it has to be opened again.
bool FollowConnection::finish(Open& open) {
  Followed& followed = *open.followed;
  const auto status = open.flow->channel().status();
  open.flow.reset();  // its place is needed for the question
  const bool progress = open.progress();
  if (!status) {
    return again(followed, progress);
  }
  if (!followed.out.begun() || !followed.err.begun()) {
    constexpr int attempts = 3;
    if (followed.idle_rounds + 1 >= attempts) {
      throw Error(
          fmt::format("cannot follow job {}", followed.job.key),
          fmt::format("the server's shell ended with {} before it ran what it was given", status->describe()),
          "look at the start files of the login shell there");
    }
    return again(followed, false);
  }
  const ExactInstant asked = now_milliseconds();
  const std::optional<StatusAnswer> answer = ask(followed);
  if (!answer) {
    return again(followed, false);
  }
  const Clocks clocks = clocks_of(*answer, asked, now_milliseconds());
  const StatusReply& reply = answer->jobs.front();
  // The sizes are those of the job's own output.
  const bool read_all = followed.silent || (followed.rank ? status->success()
                                                          : followed.out.offset >= reply.out_size &&
                                                                followed.err.offset >= reply.err_size);
  using Phase = StatusReply::Phase;
  const bool ended = reply.phase != Phase::running && reply.phase != Phase::starting &&
                     reply.phase != Phase::queued && reply.phase != Phase::unknown;
  // Without following, what was there has been read when tail has come to its end; more may have come since.
  const bool done = task_.options.follow || ended ? ended && read_all : status->success() || !progress;
  if (!done) {
    // The supervisor died and the job lives on, or there is more to read.
    return again(followed, progress);
  }
  task_.done(followed,
             with_failed_rank(connection_, apply_status(followed.job, reply, clocks, Starter::alive),
                              task_.site.cancel));
  return true;
}

bool FollowConnection::ready(const Open& open) {
  return open.flow->over() || open.followed->failure.has_value();
}

void FollowConnection::wait_until_ready() {
  for (;;) {
    // Looked at before waiting: one may have finished while another's end was asked about.
    if (std::any_of(open_.begin(), open_.end(), ready)) {
      return;
    }
    pump_.wait(milliseconds(60000));
  }
}

// Takes one that is ready, and is no longer among the open ones.
void FollowConnection::settle(Open& open, bool& heard) {
  heard = heard || open.progress();
  try {
    if (open.followed->failure) {
      open.flow.reset();
      task_.fail(open.followed->job.server, *open.followed->failure);
    } else if (!finish(open)) {
      waiting_.give_back(std::move(open.followed));
    }
  } catch (const ssh::Unreachable&) {
    waiting_.give_back(std::move(open.followed));
    throw;
  } catch (const Error& error) {
    task_.fail(open.followed->job.server, error);
  }
}

void FollowConnection::give_back(bool& heard) {
  for (Open& one : open_) {
    heard = heard || one.progress();
    one.flow.reset();
    waiting_.give_back(std::move(one.followed));
  }
  open_.clear();
}

bool FollowConnection::serve(const std::function<void()>& more_wanted, bool& heard) {
  try {
    for (;;) {
      const std::size_t left = open_waiting();
      if (left > 0 && open_.empty()) {
        return false;  // not even one: somebody else uses the places
      }
      if (left > 0) {
        more_wanted();
      }
      if (open_.empty()) {
        return true;
      }
      wait_until_ready();
      for (auto at = open_.begin(); at != open_.end();) {
        if (!ready(*at)) {
          ++at;
          continue;
        }
        std::list<Open> done;
        done.splice(done.begin(), open_, at++);
        settle(done.front(), heard);
      }
    }
  } catch (const ssh::Unreachable&) {
    give_back(heard);
    throw;
  } catch (const Error& error) {
    // A server that answered before will do so again: its storage may hang for a while.
    if (error.cause() == Cause::timeout &&
        std::ranges::any_of(open_, [](const Open& one) { return one.followed->answered(); })) {
      give_back(heard);
      throw ssh::Unreachable(error.what_failed(), error.reason(), error.hint());
    }
    for (Open& one : open_) {
      one.flow.reset();
      task_.fail(one.followed->job.server, error);
    }
    open_.clear();
    throw;
  }
}

}  // namespace remote::jobs
