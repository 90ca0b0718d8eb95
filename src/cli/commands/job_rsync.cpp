// `remote job-rsync`: brings the jobs' output into .remote/jobs, once or again and again.

#include <algorithm>

#include <CLI/App.hpp>
#include <poll.h>

#include "base/strings.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> servers;
  int delay = 0;
};

// Returns whether all was brought.
bool bring(Context& context, const Arguments& arguments) {
  Project& project = context.project();
  const std::vector<std::string> names = project.server_names(arguments.servers);
  std::vector<Job> jobs = project.jobs({.ask = false});
  std::erase_if(jobs, [&](const Job& job) { return std::ranges::find(names, job.server) == names.end(); });
  const std::size_t count = jobs.size();
  const std::vector<Error> errors = project.fetch_logs(project.refresh(std::move(jobs)));
  context.show(errors);
  if (errors.empty()) {
    context.terminal.notice(count == 0 ? "no jobs"
                                       : "the output of " + counted(count, "job") + " is in .remote/jobs");
  }
  return errors.empty();
}

int run(Context& context, const Arguments& arguments) {
  if (arguments.delay == 0) {
    return bring(context, arguments) ? 0 : 1;
  }
  for (;;) {
    bring(context, arguments);  // a server that fails now is asked again the next time
    pollfd slot{context.cancel.fd(), POLLIN, 0};
    static_cast<void>(::poll(&slot, 1, arguments.delay * 1000));
    context.cancel.check();
  }
}

}  // namespace

void add_job_rsync(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-rsync", "Bring the jobs' output into .remote/jobs");
  const auto arguments = std::make_shared<Arguments>();
  add_server_option(*command, context, arguments->servers);
  command->add_option("--delay", arguments->delay, "Again every N seconds, until Ctrl-C")
      ->type_name("N")
      ->check(CLI::Range(1, 86400));
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
