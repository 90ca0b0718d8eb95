// `remote job-run --cmd C --server S`: C as a job that outlives the connection.

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/following.hpp"
#include "jobs/job_json.hpp"
#include "jobs/remote_folder.hpp"
#include "jobs/stacks.hpp"
#include "jobs/start.hpp"
#include "servers/python_env.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::string command;
  std::string server;
  EnvOptions env;
  std::vector<std::string> tags;
  bool enable_stacks = false;
  bool follow = false;
};

int run(Context& context, const Arguments& arguments) {
  if (trim(arguments.command).empty()) {
    throw Error::usage("job-run", "--cmd is empty");
  }
  const config::Config& config = context.config();
  const std::vector<config::Server> servers = context.servers({arguments.server});
  if (servers.size() != 1) {
    throw Error::usage("job-run --server " + arguments.server, "that names more than one server",
                       "a job runs on one server; name it in full");
  }
  const config::Server& server = servers.front();
  jobs::Store store = open_store(context);
  jobs::NewJob job;
  job.job.id = JobId::random();
  job.job.server = server.name;
  job.job.command = arguments.command;
  job.job.tags = arguments.tags;
  job.job.remote_folder = jobs::remote_folder_for(config, server);
  job.command = arguments.command;
  job.activate = servers::activation(config, server);
  if (arguments.enable_stacks) {
    job.activate += "\n" + jobs::enable_stacks_text(config.remote_jobs_folder_name);
  }
  job.env = arguments.env.collect();
  const jobs::StartResult result =
      jobs::start(config, store, context.connector(), {std::move(job)}, context.cancel);
  context.show_new_host_keys();
  const jobs::Job& started = result.jobs.front();
  for (const Error& error : result.errors) {
    context.show(error);
  }
  if (context.options.json) {
    context.terminal.out(jobs::to_json_text(started) + "\n");
  } else if (result.errors.empty()) {
    context.terminal.out(fmt::format("job {} started on {}\n", started.key, started.server));
    if (!arguments.follow) {
      context.terminal.notice(fmt::format("follow it with: remote job-tail --job {}", started.key));
    }
  }
  context.cancel.check();
  if (!result.errors.empty()) {
    return 1;
  }
  return arguments.follow ? follow_on_screen(context, store, result.jobs, {}) : 0;
}

}  // namespace

void add_job_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-run", "Start a command as a job that outlives the connection");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--cmd", arguments->command, "The command, run by a shell in the project's folder")
      ->type_name("C")
      ->required();
  command->add_option("--server", arguments->server, "Where it runs")->type_name("S")->required();
  add_env_options(*command, arguments->env);
  add_tag_option(*command, arguments->tags, "A word to find the job by; repeatable");
  command->add_flag("--enable-stacks", arguments->enable_stacks,
                    "Let job-stacks read the Python stacks without py-spy, on signal 50");
  command->add_flag("--follow", arguments->follow,
                    "Show its output until it ends; Ctrl-C ends the showing alone");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
