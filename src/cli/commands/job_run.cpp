// `remote job-run --cmd C --server S`: C as a job that outlives the connection.

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/output.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  JobRequest request;
  EnvOptions env;
  bool follow = false;
};

int run(Context& context, const Arguments& arguments) {
  JobRequest request = arguments.request;
  if (trim(request.command).empty()) {
    throw Error::usage("job-run", "--cmd is empty");
  }
  request.env = arguments.env.collect();
  const StartResult started = context.project().start(request);
  const Job& job = started.job;
  if (context.options.json) {
    context.terminal.out(jobs::to_json_text(job));
  } else if (!started.error) {
    context.terminal.out(fmt::format("job {} started on {}\n", job.key, job.server));
    if (!arguments.follow) {
      context.terminal.notice(fmt::format("follow it with: remote job-tail --job {}", job.key));
    }
  }
  if (started.error) {
    context.show(*started.error);
    context.cancel.check();
    return 1;
  }
  return arguments.follow ? follow_on_screen(context, {job}, {}) : 0;
}

}  // namespace

void add_job_run(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "job-run", "Start a command as a job that outlives the connection", run);
  add_cmd_option(command, arguments.request.command);
  CLI::Option* server = command.add_option("--server", arguments.request.server, "Where it runs");
  server->type_name("S")->required();
  context.completers[server] = NameKind::servers;
  arguments.env.add(command);
  add_new_tag_option(command, arguments.request.tags, "A word to find the job by; repeatable");
  command.add_flag("--enable-stacks", arguments.request.enable_stacks,
                   "Let job-stacks read the Python stacks without py-spy, on signal 50");
  command.add_flag("--follow", arguments.follow,
                   "Show its output until it ends; Ctrl-C only ends the following");
}

}  // namespace remote::cli
