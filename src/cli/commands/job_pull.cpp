// `remote job-pull --job KEY PATH…`: brings files that a job wrote from its server.

#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options.hpp"
#include "cli/show/prepare.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::string key;
  std::vector<std::string> paths;
  std::string to = ".";
  bool force = false;
};

void print(Context& context, const Arguments& arguments, const Job& job, const std::string& folder,
           const SyncReport& report) {
  for (const std::string& warning : report.warnings) {
    context.terminal.warning(visible_line(warning));
  }
  for (const std::string& name : report.newer) {
    context.terminal.warning(
        fmt::format("{}: left alone, it is newer here (--force brings it all the same)", name));
  }
  if (context.options.json) {
    const nlohmann::ordered_json value = {
        {"job", job.key},          {"id", job.id.text()},        {"server", job.server}, {"to", folder},
        {"files", report.changed}, {"newer_here", report.newer}, {"bytes", report.bytes}};
    context.terminal.out(dump_json(value));
    return;
  }
  if (report.changed.empty()) {
    context.terminal.notice(report.newer.empty() ? "all of it is here already" : "nothing was brought");
    return;
  }
  const double megabytes = static_cast<double>(report.bytes) / 1e6;
  context.terminal.notice(fmt::format("{} ({:.1f} MB) from {} in {}", counted(report.changed.size(), "file"),
                                      megabytes, job.server, arguments.to));
}

int run(Context& context, const Arguments& arguments) {
  PullRequest request;
  JobsRequest one;
  one.selection.names = {arguments.key};
  one.ask = false;
  request.job = context.project().jobs(one).front();
  request.paths = arguments.paths;
  request.to = std::filesystem::absolute(arguments.to).lexically_normal();
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
    context.terminal.notice("the same command again goes on where this one stopped");
    throw;
  }
  progress.reset();
  print(context, arguments, request.job, request.to.string(), report);
  return report.newer.empty() ? 0 : 1;
}

}  // namespace

void add_job_pull(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-pull", "Bring files that a job wrote from its server");
  const auto arguments = std::make_shared<Arguments>();
  CLI::Option* job =
      command->add_option("--job", arguments->key, "The job with this key, or whose id begins so");
  job->type_name("KEY")->required();
  context.completers[job] = NameKind::jobs;
  command
      ->add_option("paths", arguments->paths,
                   "Files or folders there, relative to the project; FOLDER/ means its content")
      ->type_name("PATH")
      ->required();
  command->add_option("--to", arguments->to, "The folder here that they come into (default: the current one)")
      ->type_name("DIR");
  command->add_flag("--force", arguments->force, "Also in place of files that are newer here");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
