// `remote attach [RANK]`: connects this terminal to pdb of a rank that waits in breakpoint() or after an
// error.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "cli/keyboard.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/output.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

struct AttachArguments {
  std::optional<int> rank;
  JobOptions jobs;
};

struct Waiter {
  Job job;
  DebuggerWait wait;

  std::optional<int> rank() const { return wait.rank ? wait.rank : job.rank; }
  std::string name() const {
    return rank() ? fmt::format("rank {} on {}", *rank(), job.server)
                  : fmt::format("job {} on {}", job.key, job.server);
  }
};

// The selected ranks that wait in a debugger, after asking their servers.
std::vector<Waiter> waiters(Context& context, const AttachArguments& arguments) {
  const Waiting waiting(context.terminal, "for servers with jobs");
  std::vector<Waiter> all;
  for (const Job& job : context.project().jobs({.selection = arguments.jobs.selection(),
                        .some = arguments.jobs.named(),
                        .unfinished_only = !arguments.jobs.by_name()})) {
    for (const DebuggerWait& wait : job.waits) {
      all.push_back({job, wait});
    }
  }
  if (all.empty()) {
    throw Error("nothing to attach to", "no rank waits in a debugger",
                "put a breakpoint into the program, or start it with --pdb-on-error: remote help debugging");
  }
  return all;
}

// The selected one. If a rank waits in several threads or processes, the first of them.
Waiter chosen(Context& context, const AttachArguments& arguments) {
  const std::vector<Waiter> all = waiters(context, arguments);
  std::vector<Waiter> fit;
  std::set<std::pair<int, std::optional<int>>> ranks;
  for (const Waiter& one : all) {
    if (!arguments.rank || one.rank() == arguments.rank) {
      ranks.emplace(one.job.key, one.rank());
      fit.push_back(one);
    }
  }
  if (ranks.size() == 1) {
    if (fit.size() > 1) {
      context.terminal.notice(
          fmt::format("{} waits in {} places; this is the first", fit.front().name(), fit.size()));
    }
    return fit.front();
  }
  for (const Waiter& one : all) {
    context.terminal.notice(
        fmt::format("{}: {}: {}", one.name(), wait_text(one.wait), attach_command(one.job, one.wait)));
  }
  throw Error::usage("remote attach",
                     ranks.empty() ? fmt::format("rank {} does not wait in a debugger", *arguments.rank)
                                   : fmt::format("{} ranks wait in a debugger", ranks.size()),
                     "name one of these");
}

// Reports how it ended; returns the exit code.
int tell(Context& context, const Waiter& waiter, Attached end) {
  const std::string again = attach_command(waiter.job, waiter.wait);
  switch (end) {
    case Attached::goes_on:
      context.terminal.notice(waiter.name() + " continues");
      return 0;
    case Attached::left:
      context.terminal.notice(fmt::format("{} still waits: {}", waiter.name(), again));
      return 0;
    case Attached::taken:
      context.terminal.notice(fmt::format("{}: attached from elsewhere", waiter.name()));
      return 1;
    case Attached::ended:
      context.terminal.notice(
          fmt::format("{}: its process has ended: remote job-tail --job {}", waiter.name(), waiter.job.key));
      return 0;
    case Attached::gone:
      break;
  }
  context.terminal.notice(waiter.name() + " no longer waits there");
  return 1;
}

int run_attach(Context& context, const AttachArguments& arguments) {
  if (context.options.json) {
    throw Error::usage("remote attach", "--json works only with commands that return data",
                       "leave --json out");
  }
  const bool typed = context.terminal.stdin_is_terminal();
  if (typed && !context.terminal.stdout_is_terminal()) {
    throw Error::usage(
        "remote attach", "stdin is a terminal, and stdout is not",
        "if a program reads the answers, send the commands through a pipe: echo 'p x' | remote attach");
  }
  const Waiter waiter = chosen(context, arguments);
  context.terminal.notice(fmt::format("{}: {}. c lets it continue, {} leaves it waiting, h is pdb's help",
                                      waiter.name(), wait_text(waiter.wait),
                                      typed ? "Ctrl-C" : "the end of the input"));
  context.terminal.set_cancel(context.cancel);  // a terminal that blocks must not delay the end
  EscapeFilter filter;
  AttachRequest request{.job = waiter.job, .wait = waiter.wait.id};
  request.on_output = [&](std::string_view data) { context.terminal.out(filter.take(data)); };
  std::optional<Attached> end;
  try {
    if (typed) {
      Keyboard keyboard(context);
      request.terminal = keyboard.side();
      end = context.project().attach(request);
      keyboard.finish();
    } else {
      request.terminal.input = context.terminal.input();
      end = context.project().attach(request);
    }
  } catch (const Error&) {
    context.terminal.notice(
        fmt::format("{} waits on: {}", waiter.name(), attach_command(waiter.job, waiter.wait)));
    throw;
  }
  return tell(context, waiter, *end);
}

}  // namespace

void add_attach(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_attach);
  add_number_option(command, "rank", arguments.rank, "Rank to debug (default: the only one that waits)",
                    "RANK", 0, 1000000);
  arguments.jobs.add(command, context);
}

}  // namespace remote::cli
