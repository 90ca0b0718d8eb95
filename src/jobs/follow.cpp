#include "jobs/follow.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <poll.h>

#include "base/clock.hpp"
#include "jobs/protocol.hpp"
#include "jobs/refresh.hpp"
#include "jobs/remote_folder.hpp"
#include "ssh/errors.hpp"

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// A header line that grows past this is no header but a login shell that prints without end.
constexpr std::size_t max_greeting = std::size_t{1} << 20U;

// One of a job's two streams: what stands before the "@remote1 follow" line is the login shell's, what comes
// after it is the job's. Each stream has its own such line, because the two arrive independently.
struct StreamState {
  std::uint64_t offset = 0;  // of the next byte to hand over
  bool begun = false;
  std::string greeting;
};

struct Followed {
  std::size_t index = 0;
  Job job;
  bool positioned = false;  // the offsets count: from now on they are asked for, not lines
  StreamState out;
  StreamState err;
  bool silent = false;           // only its end is of interest
  int idle_rounds = 0;           // reopened so often without a new byte
  std::optional<Error> failure;  // why it cannot be followed; this one job, not its neighbours
};

// What a worker follows on its own connection.
struct Open {
  std::unique_ptr<Followed> followed;
  std::unique_ptr<ssh::Channel> channel;
  std::uint64_t begin = 0;  // out + err offsets when it was opened
  std::string input;        // of the script, what is not yet sent
};

// The jobs of one server that wait for a connection, and the workers that have one.
struct Sharing {
  const config::Server* server = nullptr;
  std::mutex mutex;
  std::deque<std::unique_ptr<Followed>> waiting;
  std::list<std::jthread> workers;
  bool reached = false;  // once: from then on a link that cannot be made is a link that broke
  bool failed = false;   // a worker gave up and said why
};

class Follower {
 public:
  Follower(const config::Config& config, Store& store, ssh::Connector& connector, std::vector<Job>& jobs,
           const FollowOptions& options, const FollowEvents& events, const Cancel& cancel)
      : config_(config),
        store_(store),
        connector_(connector),
        jobs_(jobs),
        options_(options),
        events_(events),
        cancel_(cancel) {}

  std::vector<Error> run();

 private:
  void start_worker(Sharing& sharing);
  void work(Sharing& sharing);
  bool serve(Sharing& sharing, ssh::Connection& connection, bool& heard);
  std::size_t open_waiting(Sharing& sharing, ssh::Connection& connection, std::list<Open>& open);
  Open open_one(ssh::Connection& connection, Followed& followed);
  void take(Followed& followed, ssh::Stream which, std::string_view data);
  static void feed(Open& open);
  bool finish(ssh::Connection& connection, Open& open);
  void give_back(Sharing& sharing, std::unique_ptr<Followed> followed);
  void fail(const Followed& followed, const Error& error);
  void give_up(Sharing& sharing, const Error& error);
  void nap(milliseconds time) const;
  bool again(ssh::Connection& connection, Followed& followed, bool progress) const;

  const config::Config& config_;
  Store& store_;
  ssh::Connector& connector_;
  std::vector<Job>& jobs_;
  const FollowOptions& options_;
  const FollowEvents& events_;
  const Cancel& cancel_;
  std::mutex results_;
  std::vector<Error> errors_;
};

void Follower::nap(milliseconds time) const {
  pollfd slot{cancel_.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
}

void Follower::fail(const Followed& followed, const Error& error) {
  const std::lock_guard lock(results_);
  errors_.push_back(error.on(followed.job.server));
}

// A worker ends by this error; what waits still may be another's.
void Follower::give_up(Sharing& sharing, const Error& error) {
  {
    const std::lock_guard lock(sharing.mutex);
    sharing.failed = true;
  }
  const std::lock_guard lock(results_);
  errors_.push_back(error.on(sharing.server->name));
}

// A job that has to be opened again. Without a new byte not at full speed; meanwhile the others' output goes
// on. Returns false, as finish() does.
bool Follower::again(ssh::Connection& connection, Followed& followed, bool progress) const {
  using clock = std::chrono::steady_clock;
  followed.idle_rounds = progress ? 0 : followed.idle_rounds + 1;
  const auto until = clock::now() + milliseconds(std::min(100 * followed.idle_rounds, 2000));
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - clock::now());
    if (left.count() <= 0) {
      return false;
    }
    std::array<pollfd, 1> also{{{cancel_.fd(), POLLIN, 0}}};
    connection.pump(left, also);
    cancel_.check();
  }
}

void Follower::give_back(Sharing& sharing, std::unique_ptr<Followed> followed) {
  // The streams begin anew on the next channel, at the byte where they are.
  followed->positioned = followed->positioned || followed->out.begun || followed->err.begun;
  for (StreamState* stream : {&followed->out, &followed->err}) {
    stream->begun = false;
    stream->greeting.clear();
  }
  const std::lock_guard lock(sharing.mutex);
  sharing.waiting.push_back(std::move(followed));
}

void Follower::take(Followed& followed, ssh::Stream which, std::string_view data) {
  StreamState& stream = which == ssh::Stream::out ? followed.out : followed.err;
  if (followed.failure) {
    return;
  }
  while (!stream.begun && !data.empty()) {
    const std::size_t end = data.find('\n');
    stream.greeting.append(data.substr(0, end));
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
    if (stream.greeting.size() > max_greeting) {
      // Not thrown: that would end the following of all jobs on this connection.
      followed.failure.emplace(fmt::format("cannot follow job {}", followed.job.key),
                               "the login shell prints without end");
      return;
    }
    if (end == std::string_view::npos) {
      return;
    }
    std::optional<std::pair<std::uint64_t, std::uint64_t>> offsets;
    try {
      offsets = parse_follow(stream.greeting);
    } catch (const Error& error) {
      followed.failure.emplace(error);
      return;
    }
    if (offsets) {
      stream.begun = true;
      stream.offset = which == ssh::Stream::out ? offsets->first : offsets->second;
      if (!followed.positioned && !(which == ssh::Stream::out ? followed.err : followed.out).begun) {
        // Whichever header comes first positions both, so that a link that breaks right now resumes there.
        (which == ssh::Stream::out ? followed.err : followed.out).offset =
            which == ssh::Stream::out ? offsets->second : offsets->first;
      }
    }
    stream.greeting.clear();
  }
  if (data.empty()) {
    return;
  }
  stream.offset += data.size();
  events_.output(followed.index, which, data);
}

void Follower::feed(Open& open) {
  const std::size_t count = std::min(open.input.size(), open.channel->writable());
  if (count > 0) {
    open.channel->write(std::string_view(open.input).substr(0, count));
    open.input.erase(0, count);
  }
}

Open Follower::open_one(ssh::Connection& connection, Followed& followed) {
  FollowRequest request;
  request.id = followed.job.id;
  request.follow = options_.follow;
  request.wait_only = followed.silent;
  if (followed.positioned || !options_.lines) {
    request.out_offset = followed.out.offset;
    request.err_offset = followed.err.offset;
  } else {
    request.lines = options_.lines;
  }
  const RemoteFolder folder = remote_folder_of(followed.job);
  Open open;
  open.input = follow_script(folder.project, folder.jobs_folder, request);
  open.begin = followed.out.offset + followed.err.offset;
  open.channel = connection.open("exec sh -s", [this, &followed](ssh::Stream stream, std::string_view data) {
    take(followed, stream, data);
  });
  feed(open);
  return open;
}

// Opens channels for the jobs that wait; returns how many wait still because the server refuses more.
std::size_t Follower::open_waiting(Sharing& sharing, ssh::Connection& connection, std::list<Open>& open) {
  for (;;) {
    std::unique_ptr<Followed> next;
    {
      const std::lock_guard lock(sharing.mutex);
      if (sharing.waiting.empty()) {
        return 0;
      }
      next = std::move(sharing.waiting.front());
      sharing.waiting.pop_front();
    }
    try {
      Open one = open_one(connection, *next);
      one.followed = std::move(next);
      open.push_back(std::move(one));
    } catch (const ssh::TooManyChannels&) {
      const std::lock_guard lock(sharing.mutex);
      sharing.waiting.push_front(std::move(next));
      return sharing.waiting.size();
    } catch (const ssh::Unreachable&) {
      give_back(sharing, std::move(next));
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) {
        throw;
      }
      fail(*next, error);
    }
  }
}

// A channel came to its end. True when the job is done with; false when it has to be opened again.
bool Follower::finish(ssh::Connection& connection, Open& open) {
  Followed& followed = *open.followed;
  const auto status = open.channel->status();
  open.channel.reset();  // its place is needed for the question
  const bool progress = followed.out.offset + followed.err.offset > open.begin;
  if (!status) {
    return again(connection, followed, progress);
  }
  if (!followed.out.begun || !followed.err.begun) {
    constexpr int attempts = 3;
    if (followed.idle_rounds + 1 >= attempts) {
      throw Error(
          fmt::format("cannot follow job {}", followed.job.key),
          fmt::format("the server's shell ended with {} before it ran what it was given", status->describe()),
          "look at the start files of the login shell there");
    }
    return again(connection, followed, false);
  }
  const RemoteFolder folder = remote_folder_of(followed.job);
  ssh::ExecRequest request;
  request.input = status_script(folder.project, folder.jobs_folder, {followed.job.id}, {});
  request.timeout = std::chrono::seconds(10);
  std::string text;
  try {
    text = connection.exec(request, cancel_).out;
  } catch (const ssh::Unreachable&) {
    throw;
  } catch (const ssh::TooManyChannels&) {
    return again(connection, followed, false);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) {
      throw;
    }
    throw ssh::Unreachable(error.what_failed(), error.reason());  // silence is a link to be made anew
  }
  const StatusAnswer answer = parse_status(text);
  if (answer.jobs.size() != 1) {
    throw Error(fmt::format("cannot follow job {}", followed.job.key), "the server does not know it");
  }
  const StatusReply& reply = answer.jobs.front();
  const bool read_all =
      followed.silent || (followed.out.offset >= reply.out_size && followed.err.offset >= reply.err_size);
  const bool ended =
      reply.phase != StatusReply::Phase::running && reply.phase != StatusReply::Phase::starting;
  // Without following, what was there has been read when tail has come to its end; more may have come since.
  const bool done = options_.follow || ended ? ended && read_all : status->success() || !progress;
  if (!done) {
    // The supervisor died and the job lives on, or there is more to read.
    return again(connection, followed, progress);
  }
  const Job now = apply_status(followed.job, reply, Clocks{answer.server_now, now_seconds()}, Starter::alive);
  std::optional<Error> unsaved;
  try {
    store_.update({now});
  } catch (const Error& error) {
    unsaved.emplace(error);
  }
  {
    const std::lock_guard lock(results_);
    jobs_[followed.index] = now;
  }
  events_.ended(followed.index, now);
  if (unsaved) {
    fail(followed, *unsaved);
  }
  return true;
}

// Follows over one connection until nothing waits and nothing is open. Throws ssh::Unreachable when it
// breaks; what was open then waits again. `heard`: a byte of a job has come over it.
bool Follower::serve(Sharing& sharing, ssh::Connection& connection, bool& heard) {
  std::list<Open> open;
  const auto note = [&](const Open& one) {
    heard = heard || one.followed->out.offset + one.followed->err.offset > one.begin;
  };
  const auto ready = [](const Open& one) {
    return one.channel->finished() || one.followed->failure.has_value();
  };
  try {
    for (;;) {
      const std::size_t left = open_waiting(sharing, connection, open);
      if (left > 0 && open.empty()) {
        return false;  // not even one: somebody else uses the places
      }
      if (left > 0) {
        start_worker(sharing);
      }
      if (open.empty()) {
        return true;
      }
      for (;;) {
        for (Open& one : open) {
          feed(one);
        }
        // Looked at before waiting: one may have finished while another's end was asked about.
        if (std::any_of(open.begin(), open.end(), ready)) {
          break;
        }
        std::array<pollfd, 1> also{{{cancel_.fd(), POLLIN, 0}}};
        connection.pump(milliseconds(60000), also);
        cancel_.check();
      }
      for (auto at = open.begin(); at != open.end();) {
        if (!ready(*at)) {
          ++at;
          continue;
        }
        std::list<Open> done;
        done.splice(done.begin(), open, at++);
        Open& one = done.front();
        note(one);
        try {
          if (one.followed->failure) {
            one.channel.reset();
            fail(*one.followed, *one.followed->failure);
          } else if (!finish(connection, one)) {
            give_back(sharing, std::move(one.followed));
          }
        } catch (const ssh::Unreachable&) {
          give_back(sharing, std::move(one.followed));
          throw;
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::interrupted) {
            throw;
          }
          fail(*one.followed, error);
        }
      }
    }
  } catch (const ssh::Unreachable&) {
    for (Open& one : open) {
      note(one);
      one.channel.reset();
      give_back(sharing, std::move(one.followed));
    }
    throw;
  } catch (const Error& error) {
    for (Open& one : open) {
      one.channel.reset();
      if (error.kind() != ErrorKind::interrupted) {
        fail(*one.followed, error);
      }
    }
    throw;
  }
}

void Follower::work(Sharing& sharing) {
  using clock = std::chrono::steady_clock;
  int failures = 0;
  int refusals = 0;
  bool lost = false;
  for (;;) {
    {
      const std::lock_guard lock(sharing.mutex);
      if (sharing.waiting.empty()) {
        return;
      }
    }
    bool heard = false;
    auto begin = clock::now();
    try {
      const auto connection = connector_.connect(*sharing.server, cancel_);
      begin = clock::now();
      {
        const std::lock_guard lock(sharing.mutex);
        sharing.reached = true;
      }
      if (lost) {
        events_.notice(fmt::format("{}: connected again, going on where it stopped", sharing.server->name));
        lost = false;
      }
      if (serve(sharing, *connection, heard)) {
        failures = 0;
        refusals = 0;
        continue;  // returns above, unless something was given back meanwhile
      }
      constexpr int most_refusals = 50;
      if (++refusals >= most_refusals) {
        throw Error("cannot follow", "the server refuses every session on a new connection",
                    "look at MaxSessions in its sshd_config");
      }
      nap(milliseconds(200));
    } catch (const ssh::Unreachable& error) {
      cancel_.check();
      {
        const std::lock_guard lock(sharing.mutex);
        if (!sharing.reached) {
          throw;
        }
      }
      if (!lost) {
        events_.notice(fmt::format("{}: connection lost ({}); the job goes on there. Connecting again …",
                                   sharing.server->name, error.reason()));
      }
      lost = true;
      // Once at once, then 0.2 s, 0.4 s … up to 10 s: a laptop that wakes up is back soon. A link that was of
      // use begins the count anew.
      if (heard || clock::now() - begin > std::chrono::seconds(10)) {
        failures = 0;
      }
      if (failures > 0) {
        nap(milliseconds(std::min(10000, 100 << std::min(failures, 7))));
      }
      ++failures;
    }
    cancel_.check();
  }
}

void Follower::start_worker(Sharing& sharing) {
  const std::lock_guard lock(sharing.mutex);
  sharing.workers.emplace_back([this, &sharing] {
    try {
      work(sharing);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) {
        give_up(sharing, error);
      }
    } catch (const std::exception& error) {
      give_up(sharing, Error("cannot follow", error.what()));
    }
  });
}

std::vector<Error> Follower::run() {
  std::map<std::string, std::unique_ptr<Sharing>> by_server;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    auto followed = std::make_unique<Followed>();
    followed->index = i;
    followed->job = jobs_[i];
    followed->silent = i < options_.silent.size() && options_.silent[i];
    const config::Server* server = nullptr;
    try {
      server = &server_of(config_, jobs_[i]);
    } catch (const Error& error) {
      fail(*followed, error);  // a server that configs.yaml has no longer; the other jobs are followed
      continue;
    }
    auto& sharing = by_server[jobs_[i].server];
    if (!sharing) {
      sharing = std::make_unique<Sharing>();
      sharing->server = server;
    }
    sharing->waiting.push_back(std::move(followed));
  }
  for (const auto& [name, sharing] : by_server) {
    start_worker(*sharing);
  }
  for (const auto& [name, sharing] : by_server) {
    // A worker may start further ones while it is waited for: they are appended behind it.
    for (;;) {
      std::jthread worker;
      {
        const std::lock_guard lock(sharing->mutex);
        if (sharing->workers.empty()) {
          break;
        }
        worker = std::move(sharing->workers.front());
        sharing->workers.pop_front();
      }
      worker.join();
    }
  }
  cancel_.check();
  for (const auto& [name, sharing] : by_server) {
    for (const auto& followed : sharing->waiting) {
      if (!sharing->failed) {
        fail(*followed, Error(fmt::format("job {} was not followed to its end", followed->job.key),
                              "its connection ended"));
      }
    }
  }
  return std::move(errors_);
}

}  // namespace

FollowResult follow(const config::Config& config, Store& store, ssh::Connector& connector,
                    std::vector<Job> jobs, const FollowOptions& options, const FollowEvents& events,
                    const Cancel& cancel) {
  FollowResult result;
  result.jobs = std::move(jobs);
  Follower follower(config, store, connector, result.jobs, options, events, cancel);
  result.errors = follower.run();
  return result;
}

}  // namespace remote::jobs
