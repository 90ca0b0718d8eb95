// `remote torch-launch`, `helper-torch-launch` and `launch`: start the same ranks on several servers as jobs.

#include <algorithm>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/command.hpp"
#include "base/ranges.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/commands/ends.hpp"
#include "cli/commands/launch_options.hpp"
#include "cli/guide_words.hpp"
#include "cli/named_launch.hpp"
#include "cli/options.hpp"
#include "cli/script_launcher.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/output.hpp"
#include "cli/show/plan.hpp"
#include "cli/show/prepare.hpp"
#include "cli/show/waiting.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

// any: a command that is not necessarily Python.
enum class Kind { torch, helper, any };

// nullopt: the setting in `launch:` of configs.yaml, or else the default.
struct LaunchArguments {
  Kind kind = Kind::torch;
  const CLI::App* app = nullptr;
  std::string name;    // of the subcommand
  std::string launch;  // the name of an entry in `launches:`; "": none
  LaunchRequest request;
  CommandOption command;
  std::optional<std::string> nproc;  // default: auto if the command is Python, otherwise 1
  EnvOptions env;
  WorkdirOption workdir;
  HostOptions hosts;
  std::optional<std::string> launcher;
  AgentOptions agents;
  std::string mpi_agent = "lifeline";
  InitMethodOptions init_method;
  std::optional<std::string> on_failure;
  int failure_grace_s = 5;
  int lost_after_s = 60;
  RestartOptions restarts;
  LeaseOptions lease;
  HangOptions hang;
  SlurmOptions slurm;
  bool use_env = false;
  bool pdb_on_error = false;
  bool dry_run = false;
  std::optional<bool> follow;
  std::optional<bool> rsync;
  std::optional<bool> check;
  AtEnd at_end;
  std::optional<bool> frozen;
};

void show_started(Context& context, const LaunchResult& launched, const std::string& ranks_from) {
  if (context.options.json) {
    context.print(jobs_json(launched.jobs));
    return;
  }
  if (!launched.errors.empty()) {
    return;  // the outcome is reported at the end
  }
  const Plan& plan = launched.plan;
  std::vector<int> keys;
  std::ranges::transform(launched.jobs, std::back_inserter(keys), &Job::key);
  ui::Table table({{"KEY", true}, {"RANKS", true}, "SERVER"});
  table.add({ranges(keys), std::to_string(plan.world_size), server_names(launched.jobs)});
  context.terminal.out(table.text(context.terminal));
  if (!plan.batch_script.empty() || launched.jobs.front().state == JobState::queued) {
    const Job& job = launched.jobs.front();
    context.terminal.notice(fmt::format("{}{}, {}; follow rank 0 with: remote job-tail --launch {}",
                                        counted(static_cast<std::size_t>(plan.world_size), "rank"),
                                        chosen_ranks_text(plan), queued_words(job), job.key));
    return;
  }
  context.terminal.notice(fmt::format("{}{}, master {}:{}; follow rank 0 with: remote job-tail --launch {}",
                                      counted(static_cast<std::size_t>(plan.world_size), "rank"),
                                      ranks_from + chosen_ranks_text(plan), plan.master_addr,
                                      plan.master_port, launched.jobs.front().key));
}

// Reports the state of a launch that did not start completely.
void show_failed(Context& context, const LaunchResult& launched) {
  const auto left = static_cast<std::size_t>(
      std::ranges::count_if(launched.jobs, [](const Job& job) { return !is_final(job.state); }));
  context.terminal.notice(left == 0 ? "the launch failed: none of its ranks is running"
                                    : fmt::format("the launch failed: {} of its {} may run. To end {}: {}",
                                                  left, counted(launched.jobs.size(), "job"),
                                                  left == 1 ? "it" : "them", kill_command(launched.jobs)));
}

// Shows the output of rank 0 until all ranks have ended, then the verdict. Returns the exit code.
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

// The request, and the steps around it.
struct Launch {
  LaunchRequest request;
  bool follow = false;
  bool pull = false;
  bool rsync = false;
  bool ask_rsync = false;     // it was not specified whether to copy the project first
  bool one_a_server = false;  // the number of ranks was not specified
  LaunchDefaults usual{};
};

// The Python script in a command line; train.py if there is none.
std::string script_in(const std::string& line) {
  const std::vector<std::string> words = shell_words(line);
  const auto script =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  return script == words.end() ? "train.py" : visible_line(shell_quote(*script), 60);
}

// Rejects a command that is itself a launcher, or warns about it: it would start its ranks once for each
// rank.
void refuse_other_launcher(Context& context, const std::string& name, const Launch& launch) {
  const LaunchRequest& request = launch.request;
  const std::string other = other_launcher(request.command);
  const auto script = other.empty() ? find_script_launcher(context.folder(), request.command) : std::nullopt;
  const bool one_each = request.nproc == RanksPerServer(1) ||
                        (!request.hosts.empty() && std::ranges::all_of(request.hosts, [](const auto& host) {
                          return host.slots == 1;
                        }));
  if (script) {
    context.terminal.warning(fmt::format(
        "{0} starts {1} itself, once {2}, and each starts a training of its own; let remote start the ranks, "
        "by the command that {0} gives to {1}: `remote torch-launch -- {3}`",
        visible_line(script->file, 60), visible_line(script->name, 60),
        one_each ? "on each server" : "for every rank of this launch", script_in(script->line)));
  }
  if (other.empty()) {
    return;
  }
  const bool mpi = other.starts_with("mpi") || other.starts_with("orte") || other.starts_with("prte");
  const std::string without = fmt::format("`remote {} {}-- {}` starts the ranks without it", name,
                                          mpi               ? "--launcher mpi "
                                          : other == "srun" ? ""
                                                            : "--launcher torchrun ",
                                          name == "launch" ? "./program" : script_in(request.command));
  if (launch.one_a_server) {
    context.terminal.warning(
        fmt::format("{} starts ranks itself, and runs once on each server; {}", other, without));
    return;
  }
  if (!one_each) {
    throw Error::usage(
        fmt::format("remote {}: {} starts ranks itself, and would run once for every rank", name, other), "",
        fmt::format("{}; --nproc-per-node 1 runs {} once on each server", without, other));
  }
}

RanksPerServer ranks_of(const std::string& text) {
  const auto ranks = parse_ranks_per_server(text);
  if (!ranks) {
    throw Error::usage(
        fmt::format("wrong nproc_per_node '{}'", text),
        fmt::format("it must be a number from 1 to {}, auto, gpu or cpu", most_ranks_per_server));
  }
  return *ranks;
}

// Whether it was typed as the second value of --env: "--env NAME VALUE".
bool follows_its_name(const std::vector<std::string>& typed, const std::string& value) {
  for (std::size_t i = 2; i < typed.size(); ++i) {
    if (typed[i] == value && (typed[i - 2] == "--env" || typed[i - 2] == "-e")) {
      return true;
    }
  }
  return false;
}

void choose_command(Context& context, const LaunchArguments& arguments, const LaunchDefaults& usual,
                    LaunchRequest& request) {
  const auto command = arguments.command.given(context, arguments.name);
  const Env env = arguments.env.collect(context);
  if (!command && !usual.command) {
    if (!env.empty() && follows_its_name(context.typed_words, env.back().second) &&
        (env.back().second.starts_with("./") || env.back().second.ends_with(".py"))) {
      throw Error::usage(fmt::format("remote {}: --cmd is required", arguments.name),
                         fmt::format("'{}' is the value of {}", visible_line(env.back().second, 60),
                                     visible_line(env.back().first, 60)),
                         "--env takes a name and a value: --env NAME VALUE -- COMMAND");
    }
    const std::string names = join(context.project().launch_names(), ", ");
    throw Error::usage(fmt::format("remote {}: --cmd is required", arguments.name), "",
                       "give the command that every rank runs, or `launch: {cmd: …}` in configs.yaml" +
                           (names.empty() ? "" : ", or a launch by name: " + names));
  }
  request.name = request.name.empty() ? arguments.launch : request.name;
  request.command = command ? *command : *usual.command;
  request.env = usual.env;
  request.env.insert(request.env.end(), env.begin(), env.end());
  // labml_remote ran commands in the project's folder; a command in configs.yaml also expects that
  if (arguments.workdir.given() || (command && arguments.kind != Kind::helper)) {
    arguments.workdir.choose(context, request.env);
  }
  const Env& of_slurm = arguments.slurm.env();
  request.env.insert(request.env.end(), of_slurm.begin(), of_slurm.end());
  if (arguments.pdb_on_error) {
    if (!request.enable_stacks.value_or(true)) {
      throw Error::usage(arguments.name, "--pdb-on-error does not work with --no-stacks",
                         "leave one of them out");
    }
    request.env.emplace_back(pdb_on_error_variable, "1");
    request.enable_stacks = true;
  }
}

// The command line overrides configs.yaml.
Launch launch_of(Context& context, const LaunchArguments& arguments) {
  Launch launch{arguments.request};
  LaunchRequest& request = launch.request;
  LaunchDefaults usual = launch_defaults_of(context, arguments.name, arguments.launch);
  choose_command(context, arguments, usual, request);
  arguments.hosts.choose(context, usual.servers, arguments.nproc.has_value(), request);
  if (request.servers.empty() && request.hosts.empty()) {
    request.servers = usual.servers;
  }
  request.lease = arguments.lease.choose(usual);
  const std::optional<RanksPerServer> nproc = arguments.nproc ? ranks_of(*arguments.nproc) : usual.nproc;
  const bool one = !nproc && arguments.kind == Kind::any && request.lease.gpus == 0;
  launch.one_a_server = one && std::ranges::none_of(request.hosts, [](const LaunchHost& host) {
                          return host.slots.has_value();
                        });
  request.nproc = one ? 1 : nproc.value_or(OnePer::automatic);
  refuse_other_launcher(context, arguments.name, launch);
  request.launcher =
      arguments.launcher ? *parse_launcher(*arguments.launcher) : usual.launcher.value_or(request.launcher);
  // The torchrun settings in configs.yaml do not apply if the command line selects another launcher.
  const bool other = arguments.launcher && request.launcher != Launcher::torchrun;
  request.torchrun = arguments.agents.choose(other ? TorchrunOptions{} : usual.torchrun);
  request.mpi_over_ssh = arguments.mpi_agent == "ssh";
  arguments.init_method.choose(arguments.name, usual, request);
  request.local_rank_arg = request.local_rank_arg || (arguments.kind == Kind::helper && !arguments.use_env);
  request.end_others =
      arguments.on_failure ? *arguments.on_failure == "kill" : usual.end_others.value_or(true);
  request.failure_grace = std::chrono::seconds(arguments.failure_grace_s);
  request.lost_after = std::chrono::seconds(arguments.lost_after_s);
  arguments.restarts.choose(arguments.name, usual, request);
  arguments.hang.choose(arguments.name, usual, request);
  request.requeue = arguments.slurm.requeue();
  request.after = arguments.slurm.jobs_before(context);
  if (arguments.follow.value_or(false)) {
    refuse_output_as_json(context, fmt::format("{} --follow --json", arguments.name));
  }
  const bool one_value = context.options.json && !context.stream;
  launch.follow = arguments.follow.value_or(usual.follow.value_or(false)) && !one_value;
  arguments.at_end.check(arguments.name, launch.follow || arguments.dry_run);
  launch.pull = usual.pull.value_or(false);
  launch.rsync = arguments.rsync.value_or(usual.rsync.value_or(false)) && !arguments.dry_run;
  launch.ask_rsync = !arguments.rsync && !usual.rsync && !arguments.dry_run && !context.options.json &&
                     context.terminal.stdin_is_terminal() && context.terminal.stderr_is_terminal();
  request.check = arguments.check.value_or(usual.check.value_or(true));
  request.frozen = arguments.frozen ? arguments.frozen : usual.frozen;
  request.await_lifelines = !launch.follow;  // following also reports this
  launch.usual = std::move(usual);
  return launch;
}

int run_launch(Context& context, const LaunchArguments& arguments) {
  const Launch launch = launch_of(context, arguments);
  const LaunchRequest& request = launch.request;
  const std::string ranks_from =
      launch.one_a_server ? " (one per server; --nproc-per-node changes that)" : "";
  if (arguments.dry_run) {
    show_plan(context, context.project().plan(request), *arguments.app, arguments.env.collect(), launch.usual,
              arguments.kind != Kind::any);
    return 0;
  }
  if (launch.rsync || launch.ask_rsync) {
    std::vector<std::string> servers = request.servers;
    for (const LaunchHost& host : request.hosts) {
      servers.push_back(host.name);
    }
    copy_first(context, servers, launch.ask_rsync);
  }
  return start_on_screen(context, request, {launch.follow, launch.pull, &arguments.at_end, ranks_from},
                         [&] { return context.project().launch(request); });
}

// Options for starting and monitoring the ranks.
void add_running_options(CLI::App& command, LaunchArguments& arguments) {
  add_launcher_option(command, arguments.launcher);
  arguments.agents.add(command);
  command
      .add_option("--mpi-agent", arguments.mpi_agent,
                  "mpi: how mpirun reaches the other servers: the launch's own connections (default), or the "
                  "servers' ssh")
      ->check(CLI::IsMember({"lifeline", "ssh"}));
  arguments.init_method.add(command);
  command
      .add_option("--on-failure", arguments.on_failure,
                  "What to do with the other ranks when one fails (default: kill)")
      ->check(CLI::IsMember({"kill", "leave"}));
  add_number_option(command, "--failure-grace", arguments.failure_grace_s,
                    "Seconds for the other ranks to exit after a failure (default: 5)", "SECONDS", 0, 86400);
  add_number_option(command, "--lost-after", arguments.lost_after_s,
                    "Seconds of silence until a server counts as lost (default: 60)", "SECONDS", 2, 86400);
  arguments.restarts.add(command);
  arguments.lease.add(command);
  arguments.hang.add(command);
  command.add_option("--name", arguments.request.name, "Name of the launch in the history")
      ->type_name("NAME");
  command.add_option("--note", arguments.request.note, "Note for the history")->type_name("TEXT");
  command.add_flag("--dry-run", arguments.dry_run, "Show what would start, and start nothing");
  command.add_flag("--verify-sync", arguments.request.verify_sync,
                   "Start only if every server has the same files as this machine");
  add_switch(command, "--frozen,!--no-frozen", arguments.frozen,
             "Run in a copy of the code that later syncs do not change");
  add_switch(command, "--enable-stacks,!--no-stacks", arguments.request.enable_stacks,
             arguments.kind == Kind::any
                 ? "Let job-stacks read Python stacks without py-spy (signal 50)"
                 : "Let job-stacks read Python stacks without py-spy (signal 50; the default)");
  command.add_flag("--pdb-on-error", arguments.pdb_on_error,
                   "Keep a rank with an uncaught Python exception for `remote attach`");
  add_switch(command, "--follow,!--no-follow", arguments.follow, "Follow rank 0 until all ranks have ended");
  arguments.at_end.add(command);
  add_switch(command, "--rsync,!--no-rsync", arguments.rsync, "Copy the project to the servers first");
  add_switch(command, "--check,!--no-check", arguments.check,
             "Check the servers before starting (the default)");
}

void add(CLI::App& command, Context& context, Kind kind) {
  auto& arguments = arguments_of(command, context, run_launch);
  arguments.kind = kind;
  arguments.app = &command;
  arguments.name = command.get_name();
  context.completers[command.add_option("launch", arguments.launch, "One of the launches in configs.yaml")
                         ->type_name("NAME")] = NameKind::defined;
  LaunchRequest& request = arguments.request;
  request.python = kind != Kind::any;
  arguments.command.add(command, context, "Command of every rank, a line for the server's shell",
                        "--cmd,--python-cmd");
  command
      .add_option(
          "--nproc-per-node", arguments.nproc,
          std::string(
              "Ranks on each server; gpu: one for each visible GPU; cpu: one for each core; auto: gpu, or "
              "cpu without GPUs (default: ") +
              (kind == Kind::any ? "1)" : "auto)"))
      ->type_name("N|auto");
  arguments.slurm.add(command, context);
  add_number_option(command, "--nodes", request.nodes, "Slurm: number of nodes (default: 1)", "N", 1, 100000);
  add_number_option(command, "--master-port", request.master_port,
                    "Port of the rendezvous (default: a free one)", "PORT", 1, 65535);
  arguments.env.add(command);
  arguments.workdir.add(command);
  add_image_option(command, request.image);
  add_new_tag_option(command, request.tags,
                     "Tag of its jobs (default: the words of the command); repeatable");
  arguments.hosts.add(command, add_server_option(command, context, request.servers));
  if (kind == Kind::helper) {
    command.add_flag("--use-env", arguments.use_env, "Do not append --local_rank=N; ranks read LOCAL_RANK");
  } else {
    command.add_flag("--local-rank-arg", request.local_rank_arg, "Append --local_rank=N to the command");
    command.add_flag("--use-env", arguments.use_env,
                     "Accepted for labml_remote's command lines; this is the default");
  }
  add_running_options(command, arguments);
}

}  // namespace

int start_on_screen(Context& context, const LaunchRequest& request, const Onward& onward,
                    const std::function<LaunchResult()>& start) {
  std::vector<Job> started;
  bool unsaved = false;
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for the servers of the launch");
  context.on_event = [&](const Event& event) {
    if (std::holds_alternative<StepBegun>(event) || std::holds_alternative<StepDetail>(event) ||
        std::holds_alternative<TransferNews>(event) || std::holds_alternative<ServerPrepared>(event)) {
      context.show(event);  // for a rerun, which sends its code
      return;
    }
    waiting.reset();
    if (const auto* launched = std::get_if<Launched>(&event)) {
      started = launched->result.jobs;
      show_started(context, launched->result, onward.ranks_from);
    } else {
      unsaved = unsaved || (!started.empty() && std::holds_alternative<StoreProblem>(event));
      context.show(event);
    }
  };
  LaunchResult result;
  try {
    result = start();
    waiting.reset();
  } catch (const Interrupted&) {
    waiting.reset();
    context.when_interrupted = started.empty() ? "nothing was started"
                               : is_over(started)
                                   ? "none of its ranks is running"
                                   : "the ranks keep running. To end them: " + kill_command(started);
    throw;
  }
  if (!result.errors.empty()) {
    show_failed(context, result);
    context.cancel.check();
    return 1;
  }
  if (unsaved) {
    context.terminal.notice(started_unsaved(result.jobs));
  }
  if (!onward.follow) {
    return 0;
  }
  const int ended = follow(context, request, result.jobs);
  if (onward.at_end != nullptr) {
    onward.at_end->tell(context, result.jobs, ended == 0);
  }
  const int pulled = onward.pull ? pull_at_end(context, result.jobs.front()) : 0;
  return ended != 0 ? ended : pulled;
}

void add_torch_launch(CLI::App& command, Context& context) {
  add(command, context, Kind::torch);
}
void add_helper_torch_launch(CLI::App& command, Context& context) {
  add(command, context, Kind::helper);
}
void add_launch(CLI::App& command, Context& context) {
  add(command, context, Kind::any);
}

}  // namespace remote::cli
