// Starts a single job.

#include "project/new_job.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/stacks.hpp"
#include "project/code_check.hpp"
#include "project/git_state.hpp"
#include "project/lease.hpp"
#include "project/one_by_one.hpp"
#include "project/script_check.hpp"
#include "project/slurm.hpp"
#include "servers/container.hpp"
#include "servers/python_env.hpp"

namespace remote::project {

jobs::NewJob new_job(const config::Config& config, const config::Server& server, const JobProgram& program) {
  const auto& [command, env, enable_stacks, container, is_torch_agent, tree, defaults] = program;
  const auto on_error = std::ranges::find(env, pdb_on_error_variable, &Env::value_type::first);
  if (server.slurm && on_error != env.end()) {
    throw Error::usage("cannot keep a rank after an error",
                       fmt::format("attach does not reach the nodes of Slurm behind '{}'", server.name),
                       "start it so that an error ends the rank");
  }
  jobs::NewJob job;
  job.job.id = JobId::random();
  job.job.server = server.name;
  job.job.remote_folder = jobs::remote_folder_for(config, server);
  job.process = {command,
                 container ? servers::container_activation(config, server, tree)
                           : servers::activation(config, server, tree),
                 env,
                 defaults,
                 container,
                 tree};
  job.process.environment = container ? servers::container_environment(config, server, tree)
                                      : servers::python_environment(config, server, tree);
  if (enable_stacks) {
    job.process.startup_files = is_torch_agent ? wire::StartupFiles::torch_agent : wire::StartupFiles::python;
  }
  return job;
}

void set_tags(Job& job, const std::vector<std::string>& tags) {
  job.tags = tags;
  job.hidden = job.has_tag("__hidden__");
}

namespace {

// Throws Error if the lease is not available now, or never.
std::optional<wire::LeaseToTake> find_lease(Core& core, const config::Server& server,
                                            const JobRequest& request) {
  check_lease(request.lease, with_set_variables(job_env(server, request.env), request.command),
              "cannot start a job");
  if (!request.lease.any()) {
    return std::nullopt;
  }
  const wire::LeaseTerms terms = servers::to_terms(request.lease, core.config, server);
  wire::FactsRequest wanted;
  wanted.gpus = wire::GpuDetail::brief;
  const servers::FactsAnswer answer =
      servers::ask_facts(*core.connector().connect(server, core.cancel()),
                         {.wanted = std::move(wanted), .lease = terms}, core.cancel());
  try {
    judge_lease(request.lease, answer, server.name);
  } catch (const Error& problem) {
    throw name_holders(core, problem);
  }
  return wire::LeaseToTake{.terms = terms, .waits = request.lease.wait};
}

ssh::LoginFacts find_login(Core& core, const config::Server& server) {
  try {
    return core.connector().connect(server, core.cancel())->login();
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

// Rejects options that only work with Slurm, or do not work with it.
void check_scheduler(const config::Server& server, const Env& env, const JobRequest& request) {
  const bool options =
      std::ranges::any_of(env, [](const auto& variable) { return chooses_option(variable.first); });
  if (!server.slurm && (options || request.requeue || !request.after.empty() || !request.array.empty())) {
    throw Error::usage("cannot start a job",
                       fmt::format("{} works only with Slurm, but server '{}' has no scheduler",
                                   options                 ? "an option of sbatch"
                                   : request.requeue       ? "requeueing"
                                   : request.array.empty() ? "a job to wait for"
                                                           : "an array",
                                   server.name),
                       "choose a server that has one, or leave it out");
  }
  if (server.slurm && request.lease.any()) {
    throw Error::usage("cannot start a job", "Slurm itself shares out GPUs, cores and memory",
                       "set gpus_per_node or sbatch of the server in configs.yaml");
  }
}

StartResult start(Core& core, const JobRequest& request) {
  if (trim(request.command).empty()) {
    throw Error::usage("cannot start a job", "the command is empty", "give the command that the job runs");
  }
  config::Server server = core.one_server(request.server, "cannot start a job", "a job");
  Env env = request.env;
  if (server.slurm) {
    server.slurm = take_options(*server.slurm, env);
  }
  check_scheduler(server, env, request);
  if (request.check && request.after.empty()) {  // an earlier job may create the script
    check_script(core, {server}, request.command, env, request.image, {});
  }
  const std::optional<wire::LeaseToTake> lease = find_lease(core, server, request);
  const std::optional<Container> wanted =
      server.slurm ? container_on_slurm(server, request.image) : servers::container_of(server, request.image);
  // An earlier job may create missing files.
  CodeCheck code_check(core,
                       request.check && request.after.empty()
                           ? std::optional(PreparedCheck(core.config, request.command, env, request.image))
                           : std::nullopt);
  GitState git = ask_git(core);
  std::optional<servers::ContainerRun> container;
  if (wanted) {
    container = servers::ready_container(*core.connector().connect(server, core.cancel()), core.config,
                                         server, *wanted, core.cancel());
  }
  code_check.tell(core, {server}, {find_login(core, server)});
  jobs::NewJob job =
      new_job(core.config, server,
              {request.command, with_commit(job_env(server, env), git), request.enable_stacks, container});
  job.job.command = mask_command(request.command);
  job.job.id = request.id.value_or(job.job.id);
  set_tags(job.job, request.tags);
  job.lease = lease;
  if (!server.slurm) {
    join_launch(core, request.env, job.job);
  }
  std::vector<jobs::NewJob> all{std::move(job)};
  if (server.slurm) {
    all = slurm_jobs(core.config, server, request, std::move(all.front()));
  }
  jobs::StartResult result = jobs::start(core.site(), std::move(all));
  std::ranges::transform(result.errors, result.errors.begin(),
                         [&](const Error& error) { return name_holders(core, error); });
  if (result.unsaved) {
    core.tell(StoreProblem{result.unsaved->message()});
  }
  std::vector<Job> more(std::make_move_iterator(result.jobs.begin() + 1),
                        std::make_move_iterator(result.jobs.end()));
  return {std::move(result.jobs.front()), std::move(more),
          result.errors.empty() ? std::nullopt : std::optional(result.errors.front())};
}

}  // namespace

}  // namespace remote::project

namespace remote {

StartResult Project::start(const JobRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    project::adopt_labml_jobs(core);  // so that their keys are not reused
    return project::start(core, request);
  });
}

}  // namespace remote
