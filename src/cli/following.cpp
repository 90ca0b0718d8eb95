#include "cli/following.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "cli/common.hpp"
#include "cli/verdict.hpp"
#include "jobs/follow.hpp"
#include "ui/lines.hpp"

namespace remote::cli {
namespace {

// "[2] " for ranks of one launch, "[3 node-1] " for jobs by key.
std::string prefix_of(const Context& context, const jobs::Job& job, bool ranks, std::size_t width) {
  constexpr ui::Style styles[] = {ui::Style::cyan,    ui::Style::green, ui::Style::yellow,
                                  ui::Style::magenta, ui::Style::blue,  ui::Style::red};
  const int number = ranks ? *job.rank : job.key;
  const std::string label = fmt::format("[{:>{}}]", number, width);
  return context.terminal.paint_out(styles[static_cast<std::size_t>(number) % 6], label) + " ";
}

struct Lines {
  ui::LineAssembler out;
  ui::LineAssembler err;
};

}  // namespace

int follow_on_screen(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs,
                     const FollowChoice& choice) {
  const bool single = jobs.size() == 1;
  const bool ranks = std::all_of(jobs.begin(), jobs.end(), [&](const jobs::Job& job) {
    return job.rank && job.launch == jobs.front().launch;
  });
  int largest = 0;
  for (const jobs::Job& job : jobs) {
    largest = std::max(largest, ranks ? *job.rank : job.key);
  }
  std::vector<Lines> lines;
  for (const jobs::Job& job : jobs) {
    const std::string prefix = single ? "" : prefix_of(context, job, ranks, std::to_string(largest).size());
    lines.push_back({ui::LineAssembler(prefix), ui::LineAssembler(prefix)});
  }
  ui::Terminal& terminal = context.terminal;
  terminal.set_cancel(context.cancel);  // a screen that stands still must not hold back Ctrl-C
  std::atomic<char> last = '\n';
  const auto print = [&](ssh::Stream stream, std::string_view text) {
    last = text.empty() ? last.load() : text.back();
    if (stream == ssh::Stream::out) {
      terminal.out(text);
    } else {
      terminal.err(text);
    }
  };
  // What came last and had no newline is shown too.
  const auto finish = [&](std::size_t index) {
    print(ssh::Stream::out, lines[index].out.finish());
    print(ssh::Stream::err, lines[index].err.finish());
  };
  jobs::FollowEvents events;
  events.output = [&](std::size_t index, ssh::Stream stream, std::string_view data) {
    if (single) {
      print(stream, data);
    } else {
      print(stream, (stream == ssh::Stream::out ? lines[index].out : lines[index].err).take(data));
    }
  };
  events.ended = [&](std::size_t index, const jobs::Job& job) {
    finish(index);
    if (terminal.stdout_is_terminal() && terminal.stderr_is_terminal() && last != '\n') {
      terminal.err("\n");  // what comes now is not the job's
    }
    if (jobs::is_final(job.state)) {
      terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
    }
  };
  const auto finish_all = [&] {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      finish(i);
    }
  };
  events.notice = [&](const std::string& text) { terminal.notice(text); };
  jobs::FollowOptions options;
  options.lines = choice.lines;
  options.follow = choice.follow;
  jobs::FollowResult result;
  try {
    result =
        jobs::follow(context.config(), store, context.connector(), jobs, options, events, context.cancel);
  } catch (const Interrupted&) {
    const std::string hint =
        single ? fmt::format("remote job-kill --job {}", jobs.front().key) : "remote job-kill";
    terminal.notice(
        fmt::format("\nstopped following; the job{} on. To end: {}", single ? " goes" : "s go", hint));
    throw;
  }
  finish_all();
  context.show_new_host_keys();
  for (const Error& error : result.errors) {
    context.show(error);
  }
  const bool all_ended = std::all_of(result.jobs.begin(), result.jobs.end(),
                                     [](const jobs::Job& job) { return jobs::is_final(job.state); });
  if (choice.whole_launch && (choice.follow || all_ended)) {
    tell_verdict(context, result.jobs);
  }
  if (!result.errors.empty()) {
    return 1;
  }
  int code = 0;
  for (const jobs::Job& job : result.jobs) {
    if (jobs::is_final(job.state)) {
      code = std::max(code, single ? exit_code_of(job) : std::min(exit_code_of(job), 1));
    }
  }
  return code;
}

}  // namespace remote::cli
