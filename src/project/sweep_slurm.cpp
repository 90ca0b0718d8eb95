// A sweep on a login node: an array of Slurm, which hands out the tasks itself. docs/sweep.md.

#include <algorithm>
#include <iterator>

#include "launch/slurm.hpp"
#include "project/new_job.hpp"
#include "project/slurm.hpp"
#include "project/sweep_members.hpp"

namespace remote::project {
namespace {

Error refusal(const config::Server& login, const std::string& why, const std::string& hint) {
  return Error::usage("cannot sweep on '" + login.name + "'", why, hint);
}

}  // namespace

void check_slurm_sweep(const SweepRequest& request, const std::vector<config::Server>& servers) {
  const auto login =
      std::ranges::find_if(servers, [](const config::Server& server) { return server.slurm.has_value(); });
  if (login == servers.end()) {
    return;
  }
  if (servers.size() > 1) {
    throw refusal(*login, "it has Slurm, and no other server can take points of its array",
                  "choose it alone, or only servers without a scheduler");
  }
  if (request.lease.any()) {
    throw refusal(*login, "Slurm itself shares out GPUs, cores and memory",
                  "set gpus_per_node or sbatch of the server in configs.yaml");
  }
  if (request.retry > 0) {
    throw refusal(*login, "Slurm does not run a task of an array again when it fails",
                  "leave out the retries");
  }
}

SweepStarted start_slurm_sweep(Core& core, const SweepRequest& request, config::Server login,
                               const std::vector<SweepRow>& points) {
  SweepRequest rest = request;
  login.slurm = take_options(*login.slurm, rest.env);
  const std::optional<Container> wanted = container_on_slurm(login, request.image);
  GitState git = ask_git(core);
  CodeCheck code = make_code_check(core, request);
  const auto connection = core.connector().connect(login, core.cancel());
  std::optional<servers::ContainerRun> container;
  if (wanted) {
    container = servers::ready_container(*connection, core.config, login, *wanted, core.cancel());
  }
  const JobId launch = JobId::random();
  const Env env = sweep_env(rest, login, launch, git);
  std::vector<jobs::NewJob> all;
  std::vector<std::pair<int, std::string>> tasks;
  for (std::size_t i = 0; i < points.size(); ++i) {
    jobs::NewJob& task = all.emplace_back(new_job(
        core.config, login,
        {point_command(rest, points[i]), point_env(env, i, points[i]), rest.enable_stacks, container}));
    task.job.launch = launch;
    task.job.backend = jobs::slurm_backend;
    task.job.command = shown_command(request);
    set_tags(task.job, request.tags);
    task.job.point = SweepPoint{.number = static_cast<int>(i), .values = points[i]};
    tasks.emplace_back(static_cast<int>(i), task.job.id.text());
  }
  all.front().batch = launch::slurm_job_batch(program_for_nodes(), sbatch_options(*login.slurm), false, tasks,
                                              request.slots.value_or(0));
  const std::vector<Member> members{{login, connection->login(), "", std::nullopt, container}};
  const CodeCheck::Result found = check_members(core, members, code);
  LaunchMemory memory = remember_sweep(core, request, members, launch, git, found);
  jobs::StartResult started = jobs::start(core.site(), std::move(all));
  memory.started(started.jobs, std::nullopt, "");
  if (started.unsaved) {
    core.tell(StoreProblem{started.unsaved->message()});
  }
  if (!started.errors.empty()) {
    throw started.errors.front();
  }
  return {.launch = launch, .jobs = std::move(started.jobs), .servers = {login.name}, .errors = {}};
}

}  // namespace remote::project
