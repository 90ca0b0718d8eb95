#include "cli/launch_watch.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "cli/common.hpp"
#include "cli/lifeline_news.hpp"
#include "cli/verdict.hpp"
#include "jobs/ask.hpp"
#include "jobs/follow.hpp"
#include "jobs/kill.hpp"

namespace remote::cli {
namespace {

// Ends the other ranks, once, on a thread of its own, because the followers must go on reading meanwhile.
class Ender {
 public:
  Ender(Context& context, jobs::Store& store, const std::vector<jobs::Job>& ranks, std::chrono::seconds grace)
      : context_(context), store_(store), ranks_(ranks), grace_(grace) {}

  void end_after(const jobs::Job& failed) {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable()) {
      return;
    }
    context_.terminal.notice(
        fmt::format("{}: {}; ending the other ranks", describe(failed), state_text(failed)));
    const std::string by = fmt::format("rank {}", failed.rank.value_or(0));
    std::vector<jobs::Job> others;
    for (const jobs::Job& job : ranks_) {
      if (job.id != failed.id) {
        others.push_back(job);
      }
    }
    thread_ = std::jthread([this, by, others = std::move(others)](const std::stop_token& all_ended) {
      wait_grace(all_ended);
      if (all_ended.stop_requested()) {
        return;
      }
      jobs::KillOptions options;
      options.by = by;
      try {
        const jobs::KillResult result =
            jobs::kill(context_.config(), store_, context_.connector(), others, options, context_.cancel);
        for (const Error& error : result.errors) {
          context_.show(error);
        }
      } catch (const Interrupted&) {
        // the following itself says so
      } catch (const Error& error) {
        context_.show(error);
      }
    });
  }

 private:
  // The end of all ranks, and so of this object, ends it early.
  void wait_grace(const std::stop_token& all_ended) const {
    const auto until = std::chrono::steady_clock::now() + grace_;
    while (!all_ended.stop_requested() && !context_.cancel.cancelled() &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  Context& context_;
  jobs::Store& store_;
  const std::vector<jobs::Job>& ranks_;
  std::chrono::seconds grace_;
  std::mutex mutex_;
  std::jthread thread_;
};

// Says once, when the lifelines have had their time to connect, which servers are without one: for them this
// program must go on watching.
void tell_missing_lifelines(Context& context, jobs::Store& store, const std::vector<jobs::Job>& ranks,
                            const std::stop_token& over) {
  // lifeline.py tells of a hub that it cannot reach after two seconds, of members that do not come after
  // three.
  constexpr std::chrono::seconds times_to_look[] = {std::chrono::seconds(3), std::chrono::seconds(12)};
  const auto begin = std::chrono::steady_clock::now();
  for (const std::chrono::seconds time : times_to_look) {
    while (std::chrono::steady_clock::now() < begin + time) {
      if (over.stop_requested() || context.cancel.cancelled()) {
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    try {
      const jobs::News news =
          jobs::ask(context.config(), store, context.connector(), ranks, ask_limit, context.cancel);
      if (warn_of_missing_lifelines(context, news.jobs)) {
        return;
      }
    } catch (const std::exception&) {
      return;  // the following itself tells what is wrong
    }
  }
}

}  // namespace

int watch_launch(Context& context, jobs::Store& store, const std::vector<jobs::Job>& ranks,
                 const WatchOptions& watch) {
  ui::Terminal& terminal = context.terminal;
  terminal.set_cancel(context.cancel);
  Ender ender(context, store, ranks, watch.grace);
  jobs::FollowEvents events;
  events.output = [&](std::size_t, ssh::Stream stream, std::string_view data) {
    if (stream == ssh::Stream::out) {
      terminal.out(data);
    } else {
      terminal.err(data);
    }
  };
  events.ended = [&](std::size_t, const jobs::Job& job) {
    const bool bad = job.state == jobs::State::failed || job.state == jobs::State::lost;
    if (bad && watch.end_others) {
      ender.end_after(job);
    }
  };
  events.notice = [&](const std::string& text) { terminal.notice(text); };
  jobs::FollowOptions options;
  for (const jobs::Job& job : ranks) {
    options.silent.push_back(job.rank.value_or(0) != 0);
  }
  std::jthread teller;
  if (watch.end_others) {
    teller = std::jthread(
        [&](const std::stop_token& over) { tell_missing_lifelines(context, store, ranks, over); });
  }
  jobs::FollowResult result;
  try {
    result =
        jobs::follow(context.config(), store, context.connector(), ranks, options, events, context.cancel);
  } catch (const Interrupted&) {
    terminal.notice("\nstopped following; the ranks go on. To end them: remote job-kill");
    throw;
  }
  for (const Error& error : result.errors) {
    context.show(error);
  }
  tell_verdict(context, result.jobs);
  const bool all_well = result.errors.empty() &&
                        std::all_of(result.jobs.begin(), result.jobs.end(),
                                    [](const jobs::Job& job) { return job.state == jobs::State::succeeded; });
  return all_well ? 0 : 1;
}

}  // namespace remote::cli
