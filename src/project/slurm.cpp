#include "project/slurm.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/keep_program.hpp"
#include "jobs/start.hpp"
#include "launch/slurm.hpp"
#include "project/code_check.hpp"
#include "project/history.hpp"
#include "project/new_job.hpp"
#include "project/script_check.hpp"
#include "project/server_setup.hpp"
#include "servers/container.hpp"

namespace remote::project {
namespace {

Error refusal(const std::string& reason, const std::string& hint) {
  return Error::usage("launch", reason, hint);
}

// Rejects options that a launch on a login node does not support.
void check_login(const config::Server& login, const LaunchRequest& request) {
  if (!request.hosts.empty()) {
    throw refusal(
        fmt::format("server '{}' is a login node of Slurm, which chooses the hosts itself", login.name),
        "name the server, and give the number of nodes and ranks per node");
  }
  container_on_slurm(login, request.image);
  if (request.init_method != InitMethod::env) {
    throw refusal("INIT_METHOD does not work with Slurm, because the nodes are unknown until the job begins",
                  "let the ranks find each other by MASTER_ADDR and MASTER_PORT, which the job sets; if "
                  "configs.yaml has launch: {init_method: …}, remove it there")
        .mended_by(Remedy::use_env_method);
  }
  if (request.mpi_over_ssh) {
    throw refusal(
        "under Slurm, the way mpirun reaches other servers cannot be chosen: Slurm starts the ranks itself",
        "choose another launcher, or servers without a scheduler");
  }
  if (request.torchrun.rendezvous || request.torchrun.nodes || request.torchrun.max_restarts) {
    throw refusal("under Slurm, the agents of torchrun meet at a static rendezvous and are not restarted",
                  "leave out the options for another way, or use servers without a scheduler");
  }
  if (request.frozen.value_or(false) || !request.tree.empty()) {
    throw refusal(
        "a frozen launch does not work with Slurm, because jobs may begin long after they are queued",
        "--no-frozen, or servers without a scheduler");
  }
  if (request.restarts > 0) {
    throw refusal("under Slurm, a job that has failed is not started again by this launch",
                  "leave out the restarts; Slurm itself starts it again after a node has failed, if asked to "
                  "requeue it");
  }
  if (request.lease.any()) {
    throw refusal("Slurm itself shares out GPUs, cores and memory",
                  "set gpus_per_node or sbatch of the server in configs.yaml");
  }
  if (request.hang_after.count() > 0) {
    throw refusal("hang detection does not work under Slurm",
                  "leave out --hang-after; if configs.yaml has launch: {hang_after: …}, remove it there");
  }
  if (request.verify_sync) {
    throw refusal("the comparison of all contents does not work with Slurm",
                  "send the project first, which updates files that differ");
  }
}

}  // namespace

std::optional<Container> container_on_slurm(const config::Server& login,
                                            const std::optional<std::string>& image) {
  std::optional<Container> container = servers::container_of(login, image);
  if (!container) {
    return std::nullopt;
  }
  if (container->engine && container->engine != ContainerEngine::apptainer) {
    throw refusal(
        fmt::format("server '{}' is a login node of Slurm, and containers of {} are not processes of Slurm's "
                    "jobs: they would escape its limits and outlive scancel",
                    login.name, to_string(*container->engine)),
        "give the server `container: {engine: apptainer}` in configs.yaml, which runs images of docker too "
        "(docker://IMAGE), or `container: none`")
        .mended_by(Remedy::no_image);
  }
  container->engine = ContainerEngine::apptainer;
  return container;
}

std::optional<config::Server> login_of(const Core& core, const LaunchRequest& request) {
  std::vector<config::Server> servers;
  if (request.hosts.empty()) {
    servers = core.servers(request.servers);
  } else {
    for (const LaunchHost& host : resolve_hosts(core, request.hosts)) {
      servers.push_back(core.servers({host.name}).front());
    }
  }
  const auto login =
      std::ranges::find_if(servers, [](const config::Server& one) { return one.slurm.has_value(); });
  if (login == servers.end()) {
    const bool options =
        std::ranges::any_of(request.env, [](const auto& variable) { return chooses_option(variable.first); });
    if (options || request.nodes || request.requeue || !request.after.empty()) {
      const std::string what = options           ? "an option of sbatch"
                               : request.nodes   ? "a number of nodes"
                               : request.requeue ? "requeueing"
                                                 : "a job to wait for";
      throw refusal(what + " works only with Slurm, but no server of this launch has a scheduler",
                    "set scheduler: slurm for the login node in configs.yaml, or leave it out");
    }
    return std::nullopt;
  }
  if (servers.size() > 1) {
    throw refusal(fmt::format("server '{}' is a login node of Slurm, and a launch there has no other server",
                              login->name),
                  "name that server alone, or the others without it");
  }
  check_login(*login, request);
  return *login;
}

std::vector<std::string> sbatch_options(const config::Slurm& settings) {
  std::vector<std::string> options;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) {
      options.push_back(fmt::format("--{}={}", name, *value));
    }
  };
  add("partition", settings.partition);
  add("account", settings.account);
  add("time", settings.time);
  add("constraint", settings.constraint);
  if (settings.gpus_per_node.value_or(0) > 0) {
    options.push_back(fmt::format("--gpus-per-node={}", *settings.gpus_per_node));
  }
  // If an option is repeated, the last one wins.
  options.insert(options.end(), settings.options.begin(), settings.options.end());
  return options;
}

namespace {

// Variables in a request that set options of sbatch: those that sbatch itself reads, and SBATCH_OPTION for
// any other.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> option_variables{
    {{"SBATCH_PARTITION", "--partition="},
     {"SBATCH_ACCOUNT", "--account="},
     {"SBATCH_TIMELIMIT", "--time="},
     {"SBATCH_QOS", "--qos="},
     {"SBATCH_CONSTRAINT", "--constraint="},
     {"SBATCH_RESERVATION", "--reservation="},
     {"SBATCH_GPUS_PER_NODE", "--gpus-per-node="},
     {"SBATCH_OPTION", ""}}};

}  // namespace

config::Slurm take_options(config::Slurm settings, Env& env) {
  for (const auto& [name, value] : env) {
    const auto known =
        std::ranges::find(option_variables, name, &std::pair<std::string_view, std::string_view>::first);
    if (known == option_variables.end()) {
      continue;
    }
    const std::string option = std::string(known->second) + value;
    if (const auto problem = config::sbatch_problem(option)) {
      throw Error::usage("cannot give sbatch " + visible_line(option), *problem,
                         "`man sbatch` has its options");
    }
    if (name == "SBATCH_GPUS_PER_NODE") {  // "4", or "a100:4"
      settings.gpus_per_node = parse_number<int>(value.substr(value.rfind(':') + 1));
    }
    settings.options.push_back(option);
  }
  std::erase_if(env, [](const auto& variable) { return chooses_option(variable.first); });
  return settings;
}

bool chooses_option(std::string_view name) {
  return std::ranges::find(option_variables, name, &std::pair<std::string_view, std::string_view>::first) !=
         option_variables.end();
}

Plan plan_on_slurm(const config::Server& login, const LaunchRequest& request, const std::string& commit) {
  if (trim(request.command).empty()) {
    throw Error::usage("launch", "the command is empty", "give the command that every rank runs");
  }
  launch::LaunchSpec spec;
  spec.command = request.command;
  spec.launcher = request.launcher;
  spec.run_id = JobId::random().text();
  spec.commit = commit;
  spec.env = request.env;
  const config::Slurm settings = take_options(*login.slurm, spec.env);
  spec.tags = request.tags;
  spec.local_rank_arg = request.local_rank_arg;
  spec.torch = request.python;
  launch::SlurmSpec slurm;
  slurm.program = program_for_nodes();
  slurm.options = sbatch_options(settings);
  slurm.login = login.name;
  slurm.nodes = request.nodes.value_or(1);
  slurm.nproc = launch::slurm_nproc(request.nproc, settings.gpus_per_node.value_or(0), login.name);
  slurm.master_port = request.master_port.value_or(0);
  slurm.requeue = request.requeue;
  slurm.container = container_on_slurm(login, request.image);
  if (request.end_others) {
    slurm.failure_grace = static_cast<int>(request.failure_grace.count());
  }
  return launch::make_slurm_plan(spec, slurm, login.variables());
}

LaunchResult launch_on_slurm(Core& core, const config::Server& login, const LaunchRequest& request,
                             GitState git, bool code_was_sent) {
  LaunchResult result;
  result.plan = plan_on_slurm(login, request, commit_of(git));
  const PlannedProcess& process = result.plan.processes.front();
  std::optional<CodeCheck> code_check;
  std::optional<PreparedCheck> prepared;
  if (request.check && request.after.empty()) {  // an earlier job may create missing files
    prepared.emplace(core.config, request.python ? with_python(request.command) : request.command,
                     request.env, request.image);
  }
  if (request.tell_changes) {
    code_check.emplace(core, std::move(prepared));  // reads the project while connecting to the server
  }
  const ssh::LoginFacts facts = core.connector().connect(login, core.cancel())->login();
  CodeCheck::Result code;
  if (code_check) {
    code = code_check->tell(core, {login}, {facts});
  } else if (code_was_sent) {
    code.servers.same = {login.name};
  }
  if (code_check || code_was_sent) {
    tell_code(core, git, code.servers);
  }
  if (request.check) {
    check_script(core, {login}, request.python ? with_python(request.command) : request.command, request.env,
                 request.image, code.changed);
  }
  std::optional<servers::ContainerRun> container;
  if (process.container) {
    container = servers::ready_container(*core.connector().connect(login, core.cancel()), core.config, login,
                                         *process.container, core.cancel());
  }
  const bool stacks = request.enable_stacks.value_or(request.python || process.is_torch_agent);
  jobs::NewJob job = new_job(
      core.config, login,
      {process.command, process.env, stacks, container, process.is_torch_agent, {}, process.defaults});
  job.batch = result.plan.batch_script;
  job.job.backend = jobs::slurm_backend;
  job.requeue = request.requeue;
  job.after = ids_before(core.config, login, request.after);
  job.job.command = mask_command(request.command);
  set_tags(job.job, process.tags);
  job.job.launch = JobId::parse(result.plan.run_id);
  job.job.rank = 0;
  job.job.world_size = result.plan.world_size;
  job.job.ranks = process.ranks;
  job.job.labelled = process.is_torch_agent && request.enable_stacks.value_or(true);
  // Its nodes are not queried before the start, so the record only has the code and the environment.
  LaunchMemory memory(core, request, result.plan, git,
                      {planned_setup(core.config, login, facts, result.plan.processes, code.changed)}, {});
  jobs::StartResult started = jobs::start(core.site(), {std::move(job)});
  result.jobs = std::move(started.jobs);
  result.errors = std::move(started.errors);
  const std::string news =
      core.config.notify ? "remote sends no notifications: use sbatch's --mail-type" : "";
  memory.started(result.jobs, std::nullopt, news);
  core.tell(Launched{result});
  if (started.unsaved) {
    core.tell(StoreProblem{started.unsaved->message()});
  }
  if (!result.errors.empty()) {
    core.tell(PartsFailed{result.errors});
  }
  return result;
}

std::string program_for_nodes() {
  return fmt::format("../.bin/{}", jobs::server_program().digest);
}

std::vector<jobs::NewJob> slurm_jobs(const config::Config& config, const config::Server& login,
                                     const JobRequest& request, jobs::NewJob job) {
  job.job.backend = jobs::slurm_backend;
  job.requeue = request.requeue;
  job.after = ids_before(config, login, request.after);
  std::vector<jobs::NewJob> all;
  std::vector<std::pair<int, std::string>> tasks;
  for (const int number : request.array) {
    jobs::NewJob& task = all.emplace_back(job);
    task.job.id = JobId::random();
    task.job.tags.push_back(fmt::format("array-{}", number));
    tasks.emplace_back(number, task.job.id.text());
  }
  if (all.empty()) {
    all.push_back(std::move(job));
  }
  all.front().batch = launch::slurm_job_batch(program_for_nodes(), sbatch_options(*login.slurm),
                                              request.requeue, tasks, request.array_limit.value_or(0));
  return all;
}

std::vector<JobId> ids_before(const config::Config& config, const config::Server& server,
                              const std::vector<Job>& after) {
  std::vector<JobId> ids;
  for (const Job& job : after) {
    if (job.server != server.name || job.remote_folder != jobs::remote_folder_for(config, server)) {
      throw Error::usage(
          fmt::format("cannot wait for job {}", job.key),
          fmt::format("it is not a job of server '{}', whose Slurm is to wait for it", server.name),
          "wait for a job of the same login node, or leave that out");
    }
    ids.push_back(job.id);
  }
  return ids;
}

}  // namespace remote::project
