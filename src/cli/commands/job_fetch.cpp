// `remote job-rsync`: copies the jobs' output to .remote/jobs, once or repeatedly. `remote job-pull --job KEY
// PATH…`: copies files that a job wrote from its server.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/prepare.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

struct FetchArguments {
  std::vector<std::string> servers;
  JobOptions jobs;
  std::optional<int> delay;
  bool show_output = false;
};

// Returns whether everything was copied.
bool bring(Context& context, const FetchArguments& arguments) {
  Project& project = context.project();
  const std::vector<std::string> names = project.server_names(arguments.servers);
  std::vector<Job> jobs =
      project.jobs({.selection = arguments.jobs.selection(), .some = arguments.jobs.named(), .ask = false});
  std::erase_if(jobs, [&](const Job& job) { return std::ranges::find(names, job.server) == names.end(); });
  const std::size_t count = jobs.size();
  const std::string folder = project.jobs_folder().lexically_relative(project.folder()).string();
  if (arguments.show_output) {
    for (const Job& job : jobs) {
      context.terminal.notice(fmt::format("{} -> {}/{}", job.server, folder, job.id.text()));
    }
  }
  const std::vector<Error> errors = project.fetch_logs(project.refresh(std::move(jobs)));
  context.show(errors);
  if (errors.empty()) {
    context.terminal.notice(count == 0 ? "no jobs"
                                       : "the output of " + counted(count, "job") + " is in " + folder);
  }
  return errors.empty();
}

int fetch(Context& context, const FetchArguments& arguments) {
  if (arguments.delay == 0) {
    context.terminal.notice("--delay 0 has no effect: the output is copied once");
  }
  if (arguments.delay.value_or(0) == 0) {
    return bring(context, arguments) ? 0 : 1;
  }
  context.when_interrupted = "stopped; the jobs keep running";
  for (;;) {
    bring(context, arguments);  // a server that fails now is retried next time
    context.pause(std::chrono::seconds(*arguments.delay));
  }
}

struct PullArguments {
  JobOptions jobs;
  std::vector<std::string> words;  // the paths, preceded by the job's key unless an option names it
  std::string to = ".";
  bool force = false;
};

void print(Context& context, const PullArguments& arguments, const Job& job, const std::string& folder,
           const SyncReport& report) {
  for (const std::string& warning : report.warnings) {
    context.terminal.warning(visible_line(warning));
  }
  for (const std::string& name : report.newer) {
    context.terminal.warning(fmt::format("{}: not changed, it is newer here (--force replaces it)", name));
  }
  if (context.options.json) {
    const nlohmann::ordered_json value = {
        {"job", job.key},          {"id", job.id.text()},        {"server", job.server}, {"to", folder},
        {"files", report.changed}, {"newer_here", report.newer}, {"bytes", report.bytes}};
    context.print(value);
    return;
  }
  if (report.changed.empty()) {
    context.terminal.notice(report.newer.empty() ? "already up to date" : "nothing was copied");
    return;
  }
  context.terminal.notice(fmt::format("{} ({}) from {} in {}", counted(report.changed.size(), "file"),
                                      size_text(report.bytes), job.server, arguments.to));
}

// The selected job: the first rank of a launch; with tags, that of the newest matching launch or job.
Job job_to_pull_from(Project& project, const JobOptions& options) {
  const std::vector<Job> jobs = project.jobs({.selection = options.selection(), .some = true, .ask = false});
  const std::vector<Batch> batches = by_launch(jobs);
  if (batches.size() > 1 && options.by_name()) {
    throw Error::usage("job-pull", "several jobs are named", "copy the files of one after the other");
  }
  const Batch& newest = *std::ranges::max_element(
      batches, {}, [](const Batch& batch) { return std::pair(batch.front().created_at, batch.front().key); });
  return first_rank(newest);
}

int pull(Context& context, const PullArguments& arguments) {
  PullRequest request;
  request.paths = arguments.words;
  JobOptions named = arguments.jobs;
  if (!named.named()) {
    if (request.paths.front().find(':') != std::string::npos) {  // scp's syntax
      throw Error::usage("job-pull",
                         fmt::format("'{}' is not a job", visible_line(request.paths.front(), 60)),
                         "a job's key and its files are two words: remote job-pull KEY PATH --to DIR");
    }
    named.words = {request.paths.front()};
    request.paths.erase(request.paths.begin());
  }
  if (request.paths.empty()) {
    throw Error::usage("job-pull", "no path is given", "remote job-pull KEY PATH…");
  }
  const std::string& last = request.paths.back();  // in cp's syntax, which would copy the whole project
  if (request.paths.size() > 1 && (last == "." || last == "./" || last == "..")) {
    throw Error::usage("job-pull", fmt::format("'{}' is given as a path to copy", last),
                       fmt::format("the folder to copy to is named by --to {}", last));
  }
  request.job = job_to_pull_from(context.project(), named);
  request.to = absolute_path(arguments.to).lexically_normal();
  request.force = arguments.force;
  std::optional<ui::Progress> progress;
  if (context.terminal.stderr_is_terminal() && !context.options.quiet) {
    progress.emplace(context.terminal, std::vector<std::string>{request.job.server}, false);
    progress->step(0, "job-pull");
    request.on_progress = [&progress](const TransferProgress& now) {
      progress->transfer(0, as_transfer(now));
    };
  }
  SyncReport report;
  try {
    report = context.project().pull(request);
  } catch (const Interrupted&) {
    progress.reset();
    context.when_interrupted = "interrupted: the same command again continues where this one stopped";
    throw;
  }
  progress.reset();
  print(context, arguments, request.job, request.to.string(), report);
  return report.newer.empty() ? 0 : 1;
}

}  // namespace

void add_job_rsync(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, fetch);
  add_server_option(command, context, arguments.servers);
  add_number_option(command, "--delay", arguments.delay, "Repeat every N seconds, until Ctrl-C", "N", 0,
                    86400);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command.add_flag("--show-output", arguments.show_output, "Print the folder of each job");
}

void add_job_pull(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, pull);
  arguments.jobs.add(command, context, "The newest launch or job with this tag");
  command
      .add_option(
          "words", arguments.words,
          "Job and its files, relative to the project there: FOLDER/ copies the content, 'ckpt/*.pt' a "
          "pattern. No KEY with --job, --launch or --tag")
      ->type_name("[KEY] PATH")
      ->required();
  command.add_option("--to", arguments.to, "Folder to copy to (default: the current folder)")
      ->type_name("DIR");
  command.add_flag("--force", arguments.force, "Replace files that are newer here");
}

}  // namespace remote::cli
