// `remote torch-launch`, `helper-torch-launch` and `launch`: the same ranks on several servers as jobs.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/random.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/launch_watch.hpp"
#include "cli/lifeline_news.hpp"
#include "cli/sync_check.hpp"
#include "jobs/kill.hpp"
#include "jobs/remote_folder.hpp"
#include "jobs/stacks.hpp"
#include "jobs/start.hpp"
#include "launch/command.hpp"
#include "launch/plan.hpp"
#include "launch/probe.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

enum class Kind { torch, helper, plain };

struct Arguments {
  Kind kind = Kind::torch;
  std::string command;
  std::string nproc = "auto";
  std::optional<int> master_port;
  EnvOptions env;
  std::vector<std::string> tags;
  std::vector<std::string> servers;
  std::string launcher = "ranks";
  std::string on_failure = "kill";
  int failure_grace_s = 5;
  int lost_after_s = 60;
  bool use_env = false;
  bool local_rank_arg = false;
  bool dry_run = false;
  bool follow = false;
  bool verify_sync = false;
  bool enable_stacks = false;
};

// Connects to all servers. Returns the address by which this machine reaches the first one.
std::string connect_all(Context& context, const std::vector<config::Server>& servers) {
  const auto outcomes = servers::fan_out(
      servers, [](const config::Server& server) { return server.name; },
      [&](const config::Server& server, std::size_t) {
        return context.connector().connect(server, context.cancel)->peer_address();
      });
  context.show_new_host_keys();
  std::vector<Error> errors;
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) {
      errors.push_back(*outcome.error);
    }
  }
  // A launch needs all its servers: without one the others would wait for it in vain.
  if (!errors.empty()) {
    for (const Error& error : errors) {
      context.show(error);
    }
    throw Error("nothing was started", "a launch needs all of its servers",
                "`--server` names those that are to take part");
  }
  return *outcomes.front().value;
}

// What the servers say of themselves, and of the way to the master.
std::vector<launch::ProbeAnswer> probe_all(Context& context, const std::vector<config::Server>& servers,
                                           const std::string& master_addr, std::optional<int> port) {
  const auto outcomes = servers::fan_out(
      servers, [](const config::Server& server) { return server.name; },
      [&](const config::Server& server, std::size_t index) {
        launch::ProbeRequest request;
        request.master_addr = master_addr;
        request.activate = servers::activation(context.config(), server);
        if (index == 0) {
          request.master_port = port.value_or(0);
        }
        ssh::ExecRequest exec;
        exec.input = ssh::wrap_script(launch::probe_script(request));
        exec.timeout = std::chrono::seconds(30);
        const auto connection = context.connector().connect(server, context.cancel);
        return launch::parse_probe(connection->exec(exec, context.cancel).out);
      });
  std::vector<launch::ProbeAnswer> answers;
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) {
      throw *outcome.error;
    }
    answers.push_back(*outcome.value);
  }
  return answers;
}

// lifeline.py needs Python 3.6. `version` is what the probe saw: "3.11.2".
bool can_hold_lifeline(const std::optional<std::string>& version) {
  if (!version) {
    return false;
  }
  const std::vector<std::string> parts = split(*version, '.');
  const int major = parse_number<int>(parts.front()).value_or(0);
  const int minor = parts.size() > 1 ? parse_number<int>(parts[1]).value_or(0) : 0;
  return major > 3 || (major == 3 && minor >= 6);
}

// The lifeline of this launch; nullopt where there can be none. Says which servers are without one.
std::optional<jobs::Lifeline> plan_lifeline(Context& context, const Arguments& arguments,
                                            const std::vector<config::Server>& servers,
                                            const std::vector<launch::ProbeAnswer>& answers,
                                            const std::string& address) {
  if (arguments.on_failure != "kill") {
    return std::nullopt;
  }
  jobs::Lifeline lifeline;
  lifeline.token = random_hex(32) + random_hex(32);
  lifeline.address = address;
  lifeline.grace_s = arguments.failure_grace_s;
  lifeline.timeout_s = arguments.lost_after_s;
  const std::string consequence =
      "when a rank fails, its ranks are ended only while this machine follows (--follow)";
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (can_hold_lifeline(answers[i].python)) {
      lifeline.servers.push_back(servers[i].name);
      lifeline.activate.emplace(servers[i].name, servers::activation(context.config(), servers[i]));
    } else {
      context.terminal.warning(fmt::format("{}: no lifeline, it has no python3 of 3.6 or later: {}",
                                           servers[i].name, consequence));
      if (i == 0 && servers.size() > 1) {
        context.terminal.warning("and without the first server there is none between the others");
        return std::nullopt;
      }
    }
  }
  if (lifeline.servers.size() > 1) {
    if (!answers.front().second_port) {
      context.terminal.warning(
          fmt::format("{}: no lifeline, no second port is free: {}", servers.front().name, consequence));
      return std::nullopt;
    }
    lifeline.port = *answers.front().second_port;
  }
  return lifeline.servers.empty() ? std::nullopt : std::optional(lifeline);
}

struct Prepared {
  launch::Plan plan;
  std::optional<jobs::Lifeline> lifeline;
};

Prepared make_plan(Context& context, const Arguments& arguments, const std::vector<config::Server>& servers,
                   const std::string& first_address) {
  launch::LaunchSpec spec;
  spec.command = arguments.command;
  spec.launcher = arguments.launcher;
  spec.env = arguments.env.collect();
  spec.tags = arguments.tags;
  spec.torch = arguments.kind != Kind::plain;
  spec.local_rank_arg = arguments.local_rank_arg || (arguments.kind == Kind::helper && !arguments.use_env);
  spec.run_id = JobId::random().text();
  spec.master_addr = servers.front().internal_address.value_or(first_address);
  const std::vector<launch::ProbeAnswer> answers =
      probe_all(context, servers, spec.master_addr, arguments.master_port);
  try {
    spec.master_port = launch::choose_port(answers.front(), arguments.master_port);
  } catch (const Error& error) {
    throw error.on(servers.front().name);
  }
  std::vector<launch::Node> nodes;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const launch::ProbeAnswer& answer = answers[i];
    if (!answer.resolved) {
      throw Error(
          "cannot launch",
          fmt::format("this server cannot resolve the master's address '{}'", spec.master_addr),
          fmt::format(
              "give server '{}' an internal_address in configs.yaml: an IP address by which the others "
              "reach it",
              servers.front().name))
          .on(servers[i].name);
    }
    launch::Node node;
    node.server = servers[i].name;
    node.gpus = answer.gpus;
    node.cpus = answer.cpus;
    node.nproc = launch::resolve_nproc(arguments.nproc, answer.gpus, answer.cpus);
    node.interface = answer.interface;
    if (servers[i].gpus && *servers[i].gpus != answer.gpus) {
      context.terminal.warning(fmt::format("{}: configs.yaml expects {} GPUs, the server shows {}",
                                           servers[i].name, *servers[i].gpus, answer.gpus));
    }
    nodes.push_back(std::move(node));
  }
  Prepared prepared;
  prepared.plan = launch::make_plan(spec, nodes);
  if (!arguments.dry_run) {
    prepared.lifeline = plan_lifeline(context, arguments, servers, answers, spec.master_addr);
  }
  return prepared;
}

std::vector<jobs::NewJob> new_jobs(const config::Config& config, const Arguments& arguments,
                                   const launch::Plan& plan, const std::vector<config::Server>& servers) {
  std::vector<jobs::NewJob> all;
  for (const launch::Process& process : plan.processes) {
    const auto server = std::find_if(servers.begin(), servers.end(),
                                     [&](const config::Server& one) { return one.name == process.server; });
    jobs::NewJob job;
    job.job.id = JobId::random();
    job.job.server = process.server;
    job.job.command = launch::mask_command(arguments.command);
    job.job.tags = process.tags;
    job.job.launch = JobId::parse(plan.run_id);
    job.job.rank = process.rank;
    job.job.world_size = plan.world_size;
    job.job.remote_folder = jobs::remote_folder_for(config, *server);
    job.command = process.command;
    job.activate = servers::activation(config, *server);
    if (arguments.enable_stacks) {
      job.activate += "\n" + jobs::enable_stacks_text(config.remote_jobs_folder_name);
    }
    job.env = process.env;
    all.push_back(std::move(job));
  }
  return all;
}

// Ranks that started cannot get on without those that did not. Where the answer is missing they may have
// started, or start later: what is ended before its start never starts.
void end_started(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs) {
  std::vector<jobs::Job> started;
  for (const jobs::Job& job : jobs) {
    if (job.state == jobs::State::running || job.state == jobs::State::starting) {
      started.push_back(job);
    }
  }
  if (started.empty()) {
    return;
  }
  context.terminal.notice("ending the ranks that have started, or may have (--on-failure=leave keeps them)");
  // Also after a Ctrl-C, which is a reason to end them; a second one ends this too.
  jobs::KillOptions options;
  options.by = "launch";
  const jobs::KillResult ended =
      jobs::kill(context.config(), store, context.connector(), started, options, Cancel());
  for (const Error& error : ended.errors) {
    context.show(error);
  }
}

void print_started(Context& context, const launch::Plan& plan, const std::vector<jobs::Job>& jobs) {
  if (context.options.json) {
    context.terminal.out(json_text(jobs));
    return;
  }
  ui::Table table({{"KEY", true}, {"RANK", true}, "SERVER", {"PID", true}});
  for (const jobs::Job& job : jobs) {
    table.add({std::to_string(job.key), std::to_string(job.rank.value_or(0)), job.server,
               job.pid ? std::to_string(*job.pid) : "-"});
  }
  context.terminal.out(table.text(context.terminal));
  context.terminal.notice(fmt::format("{} ranks, master {}:{}; follow rank 0 with: remote job-tail --job {}",
                                      plan.world_size, plan.master_addr, plan.master_port, jobs.front().key));
}

int run(Context& context, const Arguments& arguments) {
  if (trim(arguments.command).empty()) {
    throw Error::usage("launch", "--cmd is empty", "give the command that every rank runs");
  }
  launch::resolve_nproc(arguments.nproc, 1, 1);  // bad words are found before any server is asked
  const std::vector<config::Server> servers = context.servers(arguments.servers);
  if (servers.empty()) {
    throw Error::usage("launch", "configs.yaml has no servers", "add one under `servers:`");
  }
  jobs::Store store = open_store(context);
  const std::string first_address = connect_all(context, servers);
  // Ranks that run different code hang, or train something that nobody wrote.
  if (arguments.verify_sync && !project_is_the_same(context, servers)) {
    throw Error("nothing was started", "the project on the servers is not what it is here (--verify-sync)",
                "send it with `remote rsync`; files that are newer on a server stay as they are there");
  }
  const Prepared prepared = make_plan(context, arguments, servers, first_address);
  const launch::Plan& plan = prepared.plan;
  if (arguments.dry_run) {
    context.terminal.out(context.options.json ? launch::plan_json(plan) : launch::plan_text(plan));
    return 0;
  }
  const jobs::StartResult result = jobs::start(
      context.config(), store, context.connector(), new_jobs(context.config(), arguments, plan, servers),
      context.cancel, prepared.lifeline ? &*prepared.lifeline : nullptr);
  print_started(context, plan, result.jobs);
  if (!result.errors.empty()) {
    for (const Error& error : result.errors) {
      context.show(error);
    }
    if (arguments.on_failure == "kill") {
      end_started(context, store, result.jobs);
    }
    context.cancel.check();
    return 1;
  }
  if (!arguments.follow) {
    if (prepared.lifeline) {
      warn_when_lifelines_stand(context, store, *prepared.lifeline, result.jobs);
    }
    return 0;
  }
  WatchOptions options;
  options.end_others = arguments.on_failure == "kill";
  options.grace = std::chrono::seconds(arguments.failure_grace_s);
  return watch_launch(context, store, result.jobs, options);
}

void add(CLI::App& app, Context& context, Kind kind, const std::string& name, const std::string& help) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto arguments = std::make_shared<Arguments>();
  arguments->kind = kind;
  command->add_option("--cmd", arguments->command, "What every rank runs, in the project's folder")
      ->type_name("C")
      ->required();
  command
      ->add_option("--nproc-per-node", arguments->nproc, "Ranks a server; auto: one a GPU, else one a core")
      ->type_name("N|auto");
  command->add_option("--master-port", arguments->master_port, "Port of the rendezvous (default: a free one)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  add_env_options(*command, arguments->env);
  add_tag_option(*command, arguments->tags, "Instead of the words of the command; repeatable");
  add_server_option(*command, arguments->servers);
  if (kind == Kind::helper) {
    command->add_flag("--use-env", arguments->use_env,
                      "Do not append --local_rank=N: the ranks read LOCAL_RANK");
  } else {
    command->add_flag("--local-rank-arg", arguments->local_rank_arg, "Append --local_rank=N to the command");
    command->add_flag("--use-env", arguments->use_env, "The default here; for labml_remote's command lines");
  }
  command
      ->add_option("--launcher", arguments->launcher, "ranks: a process a rank; torchrun: an agent a server")
      ->check(CLI::IsMember({"ranks", "torchrun"}));
  command
      ->add_option("--on-failure", arguments->on_failure, "When a rank fails: kill the others, or leave them")
      ->check(CLI::IsMember({"kill", "leave"}));
  command
      ->add_option("--failure-grace", arguments->failure_grace_s,
                   "After a failure, the other ranks have so long to end by themselves (default: 5)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400));
  command
      ->add_option("--lost-after", arguments->lost_after_s,
                   "A server silent to the others for so long is lost, and ranks elsewhere end (default: 60)")
      ->type_name("SECONDS")
      ->check(CLI::Range(2, 86400));
  command->add_flag("--dry-run", arguments->dry_run, "Show what would be started, and start nothing");
  command->add_flag("--verify-sync", arguments->verify_sync,
                    "Start only if every server has the project as it is here, compared by content");
  command->add_flag("--enable-stacks", arguments->enable_stacks,
                    "Let job-stacks read the Python stacks without py-spy, on signal 50");
  command->add_flag("--follow", arguments->follow, "Follow rank 0 until all ranks have ended");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace

void add_launch(CLI::App& app, Context& context) {
  add(app, context, Kind::torch, "torch-launch", "Start a distributed PyTorch run");
  add(app, context, Kind::helper, "helper-torch-launch",
      "The same, appending --local_rank=N as labml_remote does");
  add(app, context, Kind::plain, "launch", "The same ranks for a command that is not Python");
}

}  // namespace remote::cli
