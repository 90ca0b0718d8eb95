// `remote torch-launch`, `helper-torch-launch` and `launch`: the same ranks on several servers as jobs.
// `remote job-run --cmd C --server S`: C as a job that outlives the connection.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/output.hpp"
#include "jobs/job_json.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

// any: a command that need not be Python.
enum class Kind { torch, helper, any };

struct Arguments {
  Kind kind = Kind::torch;
  LaunchRequest request;
  std::optional<std::string> nproc;  // default: auto, where the command is Python; else 1
  EnvOptions env;
  std::string on_failure = "kill";
  int failure_grace_s = 5;
  int lost_after_s = 60;
  bool use_env = false;
  bool dry_run = false;
  bool follow = false;
};

void show_started(Context& context, const LaunchResult& launched, const std::string& ranks_from) {
  if (context.options.json) {
    context.terminal.out(jobs_json(launched.jobs));
    return;
  }
  if (!launched.errors.empty()) {
    return;  // what became of it is told at the end
  }
  const Plan& plan = launched.plan;
  std::vector<int> keys;
  std::ranges::transform(launched.jobs, std::back_inserter(keys), &Job::key);
  ui::Table table({{"KEY", true}, {"RANKS", true}, "SERVER"});
  table.add({ranges(keys), std::to_string(plan.world_size), server_names(launched.jobs)});
  context.terminal.out(table.text(context.terminal));
  context.terminal.notice(fmt::format("{}{}, master {}:{}; follow rank 0 with: remote job-tail --launch {}",
                                      counted(static_cast<std::size_t>(plan.world_size), "rank"), ranks_from,
                                      plan.master_addr, plan.master_port, launched.jobs.front().key));
}

// Says what became of a launch of which not all was started.
void show_failed(Context& context, const LaunchResult& launched) {
  const auto left = static_cast<std::size_t>(
      std::ranges::count_if(launched.jobs, [](const Job& job) { return !is_final(job.state); }));
  context.terminal.notice(left == 0 ? "the launch failed: nothing of it runs"
                                    : fmt::format("the launch failed: {} of its {} may run. To end {}: {}",
                                                  left, counted(launched.jobs.size(), "job"),
                                                  left == 1 ? "it" : "them", kill_command(launched.jobs)));
}

// Shows rank 0 until all ranks have ended, and the verdict. Returns the exit code.
int follow(Context& context, const LaunchRequest& launch, const std::vector<Job>& ranks) {
  FollowRequest request;
  request.first_rank_only = true;
  request.judge = true;
  request.lost_after = launch.lost_after;
  if (launch.end_others) {
    request.end_others = launch.failure_grace;
  }
  return follow_on_screen(context, ranks, request);
}

LaunchRequest request_of(const Arguments& arguments) {
  LaunchRequest request = arguments.request;
  if (trim(request.command).empty()) {
    throw Error::usage("launch", "--cmd is empty", "give the command that every rank runs");
  }
  request.env = arguments.env.collect();
  request.nproc = arguments.nproc.value_or(arguments.kind == Kind::any ? "1" : "auto");
  request.local_rank_arg = request.local_rank_arg || (arguments.kind == Kind::helper && !arguments.use_env);
  request.end_others = arguments.on_failure == "kill";
  request.failure_grace = std::chrono::seconds(arguments.failure_grace_s);
  request.lost_after = std::chrono::seconds(arguments.lost_after_s);
  request.await_lifelines = !arguments.follow;  // following tells it too
  return request;
}

int run(Context& context, const Arguments& arguments) {
  const LaunchRequest request = request_of(arguments);
  const std::string ranks_from =
      arguments.kind == Kind::any && !arguments.nproc ? " (one a server; --nproc-per-node changes that)" : "";
  if (arguments.dry_run) {
    const Plan plan = context.project().plan(request);
    context.terminal.out(context.options.json ? plan_json(plan) : plan_text(plan));
    return 0;
  }
  std::vector<Job> started;
  context.on_event = [&](const Event& event) {
    if (const auto* launched = std::get_if<Launched>(&event)) {
      started = launched->result.jobs;
      show_started(context, launched->result, ranks_from);
    } else {
      context.show(event);
    }
  };
  LaunchResult result;
  try {
    result = context.project().launch(request);
  } catch (const Interrupted&) {
    context.terminal.notice(started.empty() ? "nothing was started"
                                            : "the ranks go on. To end them: " + kill_command(started));
    throw;
  }
  if (!result.errors.empty()) {
    show_failed(context, result);
    context.cancel.check();
    return 1;
  }
  return arguments.follow ? follow(context, request, result.jobs) : 0;
}

void add_launcher_option(CLI::App& command, std::string& launcher) {
  std::vector<std::string> names;
  std::vector<std::string> descriptions;
  for (const LauncherInfo& info : launchers()) {
    names.push_back(info.name);
    descriptions.push_back(info.name + ": " + info.description);
  }
  command.add_option("--launcher", launcher, join(descriptions, "; "))->check(CLI::IsMember(names));
}

void add(CLI::App& app, Context& context, Kind kind, const std::string& name, const std::string& help) {
  const auto [command, arguments] = add_command(app, context, name, help, run);
  arguments.kind = kind;
  LaunchRequest& request = arguments.request;
  request.python = kind != Kind::any;
  add_cmd_option(command, request.command, "What every rank runs, in the project's folder");
  command
      .add_option(
          "--nproc-per-node", arguments.nproc,
          std::string("Ranks a server; auto (or gpu): one a GPU that CUDA_VISIBLE_DEVICES leaves, else one a "
                      "core (default: ") +
              (kind == Kind::any ? "1)" : "auto)"))
      ->type_name("N|auto");
  add_number_option(command, "--master-port", request.master_port,
                    "Port of the rendezvous (default: a free one)", "PORT", 1, 65535);
  arguments.env.add(command);
  add_new_tag_option(command, request.tags, "Instead of the words of the command; repeatable");
  add_server_option(command, context, request.servers);
  if (kind == Kind::helper) {
    command.add_flag("--use-env", arguments.use_env,
                     "Do not append --local_rank=N: the ranks read LOCAL_RANK");
  } else {
    command.add_flag("--local-rank-arg", request.local_rank_arg, "Append --local_rank=N to the command");
    command.add_flag("--use-env", arguments.use_env, "The default here; for labml_remote's command lines");
  }
  add_launcher_option(command, request.launcher);
  command
      .add_option("--on-failure", arguments.on_failure, "When a rank fails: kill the others, or leave them")
      ->check(CLI::IsMember({"kill", "leave"}));
  add_number_option(command, "--failure-grace", arguments.failure_grace_s,
                    "After a failure, the seconds that the other ranks get to exit (default: 5)", "SECONDS",
                    0, 86400);
  add_number_option(
      command, "--lost-after", arguments.lost_after_s,
      "Seconds of silence after which a server counts as lost, and the ranks elsewhere end (default: 60)",
      "SECONDS", 2, 86400);
  command.add_flag("--dry-run", arguments.dry_run, "Show what would be started, and start nothing");
  command.add_flag("--verify-sync", request.verify_sync,
                   "Start only if every server has the project as it is here, compared by content");
  // Some versions of CLI11 set a std::optional<bool> also where the option was not given.
  command.add_flag_function(
      "--enable-stacks,!--no-stacks", [&request](std::int64_t count) { request.enable_stacks = count > 0; },
      kind == Kind::any ? "Let job-stacks read the Python stacks without py-spy, on signal 50"
                        : "The default here: job-stacks reads the Python stacks without py-spy, on "
                          "signal 50; a torch without libuv does without it, and the verdict knows "
                          "torchrun's workers");
  command.add_flag("--follow", arguments.follow, "Follow rank 0 until all ranks have ended");
}

struct JobArguments {
  JobRequest request;
  EnvOptions env;
  bool follow = false;
};

int run_job(Context& context, const JobArguments& arguments) {
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

void add_launch(CLI::App& app, Context& context) {
  add(app, context, Kind::torch, "torch-launch", "Start a distributed PyTorch run");
  add(app, context, Kind::helper, "helper-torch-launch",
      "The same, appending --local_rank=N as labml_remote does");
  add(app, context, Kind::any, "launch", "The same ranks for a command that is not Python");
}

void add_job_run(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "job-run", "Start a command as a job that outlives the connection", run_job);
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
