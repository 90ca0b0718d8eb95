// Commands and options for the end of a launch: `remote pull`, `remote notify`, and --notify and --bell.

#include "cli/commands/ends.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "cli/options.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/prepare.hpp"
#include "cli/show/waiting.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

struct ResultsArguments {
  std::string launch = "last";
};

void show_results(Context& context, const Results& results) {
  const std::string folder = results.folder.lexically_proximate(current_folder()).string();
  for (const std::string& warning : results.warnings) {
    context.terminal.warning(visible_line(warning));
  }
  for (const std::string& name : results.newer) {
    context.terminal.warning(fmt::format("{}: not changed, it is newer here", visible_line(name)));
  }
  context.show(results.errors);
  if (!results.waiting.empty()) {
    context.terminal.notice(
        fmt::format("not complete yet, not copied: {}", join(first_lines(results.waiting, 5), ", ")));
  }
  if (!results.files.empty()) {
    context.terminal.notice(fmt::format("{} ({}) in {}", counted(results.files.size(), "file"),
                                        size_text(results.bytes), folder));
  } else if (results.errors.empty()) {
    context.terminal.notice(
        results.found > 0 ? "already up to date: " + folder
        : is_folder(results.folder)
            ? "the servers have no files of this launch any more; earlier copies are in " + folder
            : "no files of this launch in its outputs: none written, or replaced by a later launch");
  }
}

struct NotifyArguments {
  bool test = false;
};

int run_notify(Context& context, const NotifyArguments& /*arguments*/) {
  NotifyTrial trial;
  {
    const Waiting waiting(context.terminal, "for the answer");
    trial = context.project().try_notify();
  }
  if (context.options.json) {
    const nlohmann::ordered_json value = {
        {"server", trial.server}, {"sent", trial.sent}, {"answer", trial.answer}};
    context.print(value);
  } else {
    context.terminal.out(fmt::format("{} from {}: {}\n", trial.sent ? "sent" : "not sent", trial.server,
                                     visible_line(trial.answer)));
  }
  return trial.sent ? 0 : 1;
}

Results pull_results(Context& context, const std::string& launch) {
  ResultsRequest request{.launch = launch};
  std::optional<ui::Progress> progress;
  if (context.terminal.stderr_is_terminal() && !context.options.quiet) {
    progress.emplace(context.terminal, std::vector<std::string>{"results"}, false);
    progress->step(0, "pull");
    request.on_progress = [&progress](const TransferProgress& now) {
      progress->transfer(0, as_transfer(now));
    };
  }
  Results results;
  try {
    results = context.project().pull_results(request);
  } catch (const Interrupted&) {
    progress.reset();
    context.when_interrupted =
        fmt::format("interrupted: remote pull {} continues where this one stopped", launch);
    throw;
  }
  progress.reset();
  show_results(context, results);
  return results;
}

int run_pull(Context& context, const ResultsArguments& arguments) {
  const Results results = pull_results(context, arguments.launch);
  if (context.options.json) {
    const nlohmann::ordered_json value = {{"to", results.folder.string()}, {"files", results.files},
                                          {"newer_here", results.newer},   {"incomplete", results.waiting},
                                          {"bytes", results.bytes},        {"found", results.found}};
    context.print(value);
  }
  return results.errors.empty() ? 0 : 1;
}

}  // namespace

int pull_at_end(Context& context, const Job& job) {
  return pull_results(context, std::to_string(job.key)).errors.empty() ? 0 : 1;
}

void add_pull(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_pull);
  add_launch_word(command, context, arguments.launch, "Key of any of its jobs, its name, or last (default)");
}

void add_notify(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_notify);
  command.add_flag("--test", arguments.test, "Send a test from the first server")->required();
}

History asked_history(Context& context) {
  const Waiting waiting(context.terminal, "for servers with launches");
  return context.project().history();
}

void AtEnd::add(CLI::App& command) {
  command
      .add_option("--notify", command_,
                  "Command to run here at the end, a line for sh; REMOTE_STATE is succeeded or failed")
      ->type_name("CMD");
  command.add_flag("--bell", bell_, "Ring the terminal's bell at the end");
}

void AtEnd::check(const std::string& name, bool waits) const {
  if (!waits && (bell_ || command_)) {
    throw Error::usage(fmt::format("remote {}: --notify and --bell need --follow", name), "",
                       "the servers can notify you themselves: `notify:` in configs.yaml");
  }
}

void AtEnd::tell(Context& context, const std::vector<Job>& jobs, bool succeeded) const {
  if (bell_ && context.terminal.stderr_is_terminal()) {
    context.terminal.err("\a");
  }
  if (!command_) {
    return;
  }
  std::vector<int> keys;
  std::ranges::transform(jobs, std::back_inserter(keys), &Job::key);
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", *command_};
  spec.set_env = {{"REMOTE_STATE", succeeded ? "succeeded" : "failed"}, {"REMOTE_JOBS", ranges(keys)}};
  const ExitStatus status = Subprocess(spec).wait();
  if (!status.success()) {
    context.terminal.warning(fmt::format("the command of --notify failed ({})", status.describe()));
  }
}

}  // namespace remote::cli
