#include "cli/show/following.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "cli/show/job_words.hpp"
#include "cli/show/verdict.hpp"
#include "ui/lines.hpp"

namespace remote::cli {
namespace {

// "[2] " for ranks of one launch, "[3 node-1] " for jobs by key.
std::string prefix_of(const Context& context, const Job& job, bool ranks, std::size_t width) {
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

int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request) {
  const bool single = jobs.size() == 1;
  const bool ranks = std::all_of(jobs.begin(), jobs.end(), [&](const Job& job) {
    return job.rank && job.launch == jobs.front().launch;
  });
  int largest = 0;
  for (const Job& job : jobs) {
    largest = std::max(largest, ranks ? *job.rank : job.key);
  }
  std::vector<Lines> lines;
  for (const Job& job : jobs) {
    const std::string prefix = single ? "" : prefix_of(context, job, ranks, std::to_string(largest).size());
    lines.push_back({ui::LineAssembler(prefix), ui::LineAssembler(prefix)});
  }
  ui::Terminal& terminal = context.terminal;
  terminal.set_cancel(context.cancel);  // a screen that stands still must not hold back Ctrl-C
  std::atomic<char> last = '\n';
  const auto print = [&](OutputStream stream, std::string_view text) {
    last = text.empty() ? last.load() : text.back();
    if (stream == OutputStream::out) {
      terminal.out(text);
    } else {
      terminal.err(text);
    }
  };
  // What came last and had no newline is shown too.
  const auto finish = [&](std::size_t index) {
    print(OutputStream::out, lines[index].out.finish());
    print(OutputStream::err, lines[index].err.finish());
  };
  request.on_output = [&](std::size_t index, OutputStream stream, std::string_view data) {
    if (single) {
      print(stream, data);
    } else {
      print(stream, (stream == OutputStream::out ? lines[index].out : lines[index].err).take(data));
    }
  };
  request.on_ended = [&](std::size_t index, const Job& job) {
    finish(index);
    if (terminal.stdout_is_terminal() && terminal.stderr_is_terminal() && last != '\n') {
      terminal.err("\n");  // what comes now is not the job's
    }
    if (is_final(job.state)) {
      terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
    }
  };
  const auto finish_all = [&] {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      finish(i);
    }
  };
  FollowResult result;
  try {
    result = context.project().follow(jobs, request);
  } catch (const Interrupted&) {
    const std::string hint =
        single ? fmt::format("remote job-kill --job {}", jobs.front().key) : "remote job-kill";
    terminal.notice(
        fmt::format("\nstopped following; the job{} on. To end: {}", single ? " goes" : "s go", hint));
    throw;
  }
  finish_all();
  context.show(result.errors);
  if (result.verdict) {
    show_verdict(context, *result.verdict);
  }
  if (!result.errors.empty()) {
    return 1;
  }
  int code = 0;
  for (const Job& job : result.jobs) {
    if (is_final(job.state)) {
      code = std::max(code, single ? exit_code_of(job) : std::min(exit_code_of(job), 1));
    }
  }
  return code;
}

}  // namespace remote::cli
