// LaunchAttempt: connects to all servers, queries them, makes the plan, starts the ranks, and stops them
// again if not all started.

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/strings.hpp"
#include "jobs/helpers.hpp"
#include "project/launch_attempt.hpp"
#include "project/lease.hpp"
#include "project/new_job.hpp"
#include "project/script_check.hpp"
#include "project/slurm.hpp"
#include "server/agent_command.hpp"
#include "servers/fanout.hpp"
#include "servers/init_file.hpp"
#include "servers/python_env.hpp"
#include "servers/sync.hpp"

namespace remote::project {

LaunchAttempt::LaunchAttempt(Core& core, const LaunchRequest& request, GitState git, bool code_was_sent)
    : core_(core), request_(request), git_(std::move(git)), code_was_sent_(code_was_sent) {
  if (trim(request.command).empty()) {
    throw Error::usage("launch", "the command is empty", "give the command that every rank runs");
  }
  if (request.mpi_over_ssh && !launch::needs_mpi(request.launcher)) {
    throw Error::usage("launch",
                       fmt::format("the launcher {} has no agent of mpirun", to_string(request.launcher)),
                       "use the launcher mpi");
  }
  if (!request.end_others && launch::needs_mpi(request.launcher)) {
    throw Error::usage("launch",
                       "mpirun ends the other ranks when one has failed, so they cannot keep running",
                       "end them, or use the launcher ranks");
  }
  check_restarts();
  check_lease();
  check_hang();
  choose_servers();
  if (servers_.empty()) {
    throw Error::usage("launch", "configs.yaml has no servers", "add one under `servers:`");
  }
  if (request.tell_changes && !request.verify_sync && git_.valid()) {  // not for plan() alone
    code_check_.emplace(core);
  }
  if (request.check) {
    prepared_.emplace(core.config, request.python ? with_python(request.command) : request.command,
                      request.env, request.image);
  }
  for (const config::Server& server : servers_) {
    if (servers::container_of(server, request.image) && request.hang_after.count() > 0) {
      throw Error::usage("launch", "hang detection does not work for ranks in a container",
                         "turn off hang detection, or launch without a container");
    }
  }
  connect_all();
}

// Checks whether this launch can have restarts.
void LaunchAttempt::check_restarts() {
  if (request_.restarts == 0) {
    if (request_.min_servers) {
      throw Error::usage("launch", "a minimum number of servers requires a launch with restarts",
                         "set the number of restarts");
    }
    return;
  }
  if (request_.mpi_over_ssh) {
    throw Error::usage("launch", "mpirun over ssh cannot restart after a failure",
                       "let mpirun use the launch's own connections");
  }
  if (!request_.end_others) {
    throw Error::usage("launch", "ranks that keep running after a failure cannot restart",
                       "end them, or launch without restarts");
  }
}

// Checks whether hang detection is possible for this launch, and the requested reaction.
void LaunchAttempt::check_hang() {
  const auto& causes = request_.restart_on;
  const bool is_cause = std::ranges::find(causes, RestartCause::hang) != causes.end();
  if (request_.hang_after.count() <= 0) {
    if (is_cause && request_.restarts > 0) {
      throw Error::usage("launch", "restarting on a hang needs hang detection",
                         "set the minutes without progress after which it hangs");
    }
    return;
  }
  if (request_.on_hang == OnHang::restart && request_.restarts == 0) {
    throw Error::usage("launch", "a launch without restarts cannot restart on a hang",
                       "set the number of restarts");
  }
  if (request_.on_hang == OnHang::restart && !causes.empty() && !is_cause) {
    throw Error::usage("launch", "it restarts on a hang, but hang is not among the causes of restarts",
                       "add hang to these causes, or end the ranks on a hang");
  }
  if (request_.on_hang != OnHang::leave && !request_.end_others) {
    throw Error::usage("launch", "ranks that keep running after a failure cannot be ended after a hang",
                       "also keep them after a hang, or end them after a failure");
  }
}

void LaunchAttempt::choose_servers() {
  if (request_.hosts.empty()) {
    servers_ = core_.servers(request_.servers);
    if (request_.servers.empty()) {
      std::erase_if(servers_, [&](const config::Server& server) {
        return std::ranges::count(core_.config.spares, server.name) > 0;
      });
    }
    add_spares();
    return;
  }
  if (!request_.servers.empty()) {
    throw Error::usage("launch", "both servers and hosts are named", "keep one of them");
  }
  for (const LaunchHost& host : resolve_hosts(core_, request_.hosts)) {
    servers_.push_back(core_.servers({host.name}).front());
    hosts_[host.name] = host;
  }
  add_spares();
}

// Adds the spares in configs.yaml that are not already servers of the launch.
void LaunchAttempt::add_spares() {
  if (request_.restarts == 0) {
    return;
  }
  for (const std::string& name : core_.config.spares) {
    if (std::ranges::find(servers_, name, &config::Server::name) == servers_.end()) {
      servers_.push_back(core_.servers({name}).front());
      ++spares_;
    }
  }
}

void LaunchAttempt::require_all(const std::vector<Error>& errors, const std::string& reason, Remedy remedy) {
  if (!errors.empty()) {
    core_.tell(PartsFailed{errors});
    throw Error("nothing was started", reason).mended_by(remedy);
  }
}

void LaunchAttempt::connect_all() {
  connecting_.resize(servers_.size());
  const auto outcomes =
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        const StepTimer timer(connecting_[index], "connect", server.name);
        const auto connection = core_.connector().connect(server, core_.cancel());
        return std::pair(connection->peer_address(), connection->login());
      });
  require_all(servers::errors_of(outcomes), "a launch needs all of its servers", Remedy::name_servers);
  first_address_ = outcomes.front().value->first;
  for (const auto& outcome : outcomes) {
    logins_.push_back(outcome.value->second);
  }
}

// Ranks that run different code hang, or train a mix of versions.
void LaunchAttempt::verify_sync() {
  servers::SyncOptions options;
  options.pipe_program = core_.hooks.rsync_helper;
  options.leave = links_to_leave(core_);
  const auto outcomes =
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t) {
        return servers::differences(*connect(server), core_.config, server, options, core_.cancel());
      });
  const std::vector<std::vector<std::string>> found = servers::values_of(outcomes);
  bool same = true;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].empty()) {
      same = false;
      core_.tell(CodeDiffers{servers_[i].name, found[i]});
    }
  }
  if (!same) {
    throw Error("nothing was started", "the project on the servers differs from the local copy",
                "files that are newer on a server are not replaced there")
        .mended_by(Remedy::send_project);
  }
}

// Prepares the engine and the image on every server before any rank starts: otherwise the other ranks would
// wait for one that has none.
void LaunchAttempt::ready_containers() {
  std::vector<config::Server> contained;
  std::vector<Container> wanted;
  for (const config::Server& server : servers_) {
    if (auto container = servers::container_of(server, request_.image)) {
      contained.push_back(server);
      wanted.push_back(std::move(*container));
    }
  }
  readying_.resize(contained.size());
  const auto outcomes = servers::fan_out(
      contained, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        const StepTimer timer(readying_[index], "container", server.name);
        return servers::ready_container(*connect(server), core_.config, server, wanted[index],
                                        core_.cancel());
      });
  require_all(servers::errors_of(outcomes), "a launch needs its container on all of its servers");
  for (std::size_t i = 0; i < contained.size(); ++i) {
    containers_.emplace(contained[i].name, *outcomes[i].value);
  }
}

// Announces the requests that follow the facts, so that they are prepared while the facts are collected.
void LaunchAttempt::announce_questions() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto connection = connect(servers_[i]);
    if (connection->parks()) {
      continue;  // the agent that reports the facts also handles the other requests
    }
    const std::string agent = server::agent_command(connection->agent_folders().chosen);
    connection->expect(agent);  // for the start
    // For the report of the lifeline or, without waiting for that, for following the output. The first server
    // is not asked for a report.
    if (!request_.await_lifelines || (request_.end_others && i > 0)) {
      connection->expect(agent);
    }
  }
}

// How the first server reaches the jobs on the other servers by ssh; see src/agent/mpi/send_order.hpp.
std::string LaunchAttempt::ssh_ways(const Plan& plan, const std::vector<jobs::NewJob>& jobs) const {
  std::string ways;
  for (std::size_t i = 1; i < plan.processes.size(); ++i) {
    const auto server = std::ranges::find(servers_, plan.processes[i].server, &config::Server::name);
    const ssh::LoginFacts& login = logins_[static_cast<std::size_t>(server - servers_.begin())];
    const Job& job = jobs[i].job;
    std::string folder =
        fmt::format("{}/{}/{}", job.remote_folder.project, job.remote_folder.jobs_folder, job.id.text());
    if (folder.starts_with("~/")) {
      folder.erase(0, 2);  // ssh starts in the home directory
    }
    ways += jobs::mpi_host_line({.name = plan.processes[i].mpi_host,
                                 .user = login.user,
                                 .address = server->internal_address.value_or(login.host),
                                 .port = login.port,
                                 .job_folder = std::move(folder)});
  }
  return ways;
}

std::vector<int> LaunchAttempt::by_server(const Plan& plan, int (*count)(const PlannedProcess&)) const {
  std::vector<int> counts;
  for (const config::Server& server : servers_) {
    int& sum = counts.emplace_back(0);
    for (const auto* processes : {&plan.processes, &plan.spares}) {
      for (const PlannedProcess& process : *processes) {
        sum += process.server == server.name ? count(process) : 0;
      }
    }
  }
  return counts;
}

std::vector<jobs::NewJob> LaunchAttempt::new_jobs(const Plan& plan) const {
  std::vector<jobs::NewJob> all;
  const std::string shown = mask_command(request_.command);
  std::vector<PlannedProcess> processes = plan.processes;
  processes.insert(processes.end(), plan.spares.begin(), plan.spares.end());
  for (const PlannedProcess& process : processes) {
    const auto server = std::ranges::find(servers_, process.server, &config::Server::name);
    const auto found = containers_.find(process.server);
    const auto container = found == containers_.end() ? std::nullopt : std::optional(found->second);
    // in a tree: needed for editable installs, which sitecustomize.py redirects
    const bool stacks =
        request_.enable_stacks.value_or(request_.python || process.is_torch_agent || !tree_.empty());
    jobs::NewJob job = new_job(
        core_.config, *server,
        {process.command, process.env, stacks, container, process.is_torch_agent, tree_, process.defaults});
    job.process.programs = process.helpers;
    job.job.command = shown;
    set_tags(job.job, process.tags);
    job.job.launch = JobId::parse(plan.run_id);
    job.job.rank = process.rank;
    job.job.world_size = plan.world_size;
    if (process.is_torch_agent || !process.mpi_host.empty()) {
      job.job.ranks = process.ranks;
      // See torch_agent.py and src/agent/mpi/rank.hpp.
      job.job.labelled = process.is_torch_agent ? request_.enable_stacks.value_or(true) : process.ranks > 1;
    }
    job.job.needed = plan.needed;
    job.job.may_restart = request_.restarts > 0;
    if (const auto lease = leases_.find(process.server); lease != leases_.end()) {
      const bool waits = request_.lease.wait;
      job.lease = {.terms = lease->second,
                   .waits = waits,
                   .is_together = waits && servers_.size() > 1,
                   // With other launchers the port is part of the command.
                   .chooses_port = waits && request_.launcher == Launcher::ranks && !request_.master_port};
      job.lease->terms.prologue = servers::inline_files(servers::prologue(core_.config, *server));
    }
    job.job.spare = all.size() >= plan.processes.size();
    if (init_file_) {
      job.init_file = servers::init_file_text(processes.size(), init_file_->folder_on(process.server));
    }
    all.push_back(std::move(job));
  }
  if (request_.mpi_over_ssh) {
    all.front().mpi_hosts = ssh_ways(plan, all);
  }
  return all;
}

// Stops ranks that started, because they cannot run without those that did not. A rank without an answer may
// have started or may start later: if it is stopped before its start, it never starts. Updates `jobs`.
void LaunchAttempt::end_started(std::vector<Job>& jobs) {
  std::vector<Job> started;
  std::ranges::copy_if(jobs, std::back_inserter(started),
                       [](const Job& job) { return !is_final(job.state); });
  if (started.empty()) {
    return;
  }
  core_.tell(EndingRanks{});
  KillRequest request;
  request.by = {.kind = JobReason::Kind::by_launch};
  // Must also work after a Ctrl-C, which is a reason to stop the ranks; a second one interrupts this too. The
  // time limit is for servers that have just stopped answering.
  const KillResult killed =
      kill(core_, started, request, Cancel(), std::chrono::ceil<std::chrono::seconds>(ask_limit));
  if (!killed.errors.empty()) {
    core_.tell(PartsFailed{killed.errors});
  }
  for (const KillResult::Entry& entry : killed.entries) {
    std::ranges::replace_if(
        jobs, [&](const Job& job) { return job.id == entry.job.id; }, entry.job);
  }
}

void LaunchAttempt::check_code() {
  LaunchCode code;
  if (code_check_) {
    CodeCheck::Result found = code_check_->tell(core_, servers_, logins_, answers_);
    changed_ = std::move(found.changed);
    code = std::move(found.servers);
  } else if (request_.verify_sync || code_was_sent_) {
    std::ranges::transform(servers_, std::back_inserter(code.same), &config::Server::name);
    code.gone_here = code_was_sent_ ? 0 : count_files_gone_here(core_, servers_, logins_);
  } else {
    return;
  }
  tell_code(core_, git_, std::move(code));
}

void LaunchAttempt::remember_older_jobs() {
  for (const Job& job : core_.store.list({.unfinished_only = true}).jobs) {
    if (job.state != JobState::starting) {
      older_jobs_.insert(job.id);
    }
  }
}

// Whether the job of another launch runs, as far as the servers' answers and the store tell.
bool LaunchAttempt::seems_to_run(const Job& job, const wire::FactsReply& answer) const {
  constexpr std::chrono::minutes longest_start{1};
  if (older_jobs_.contains(job.id)) {
    return std::ranges::find(answer.running, job.id.text()) != answer.running.end();
  }
  return job.created_at > now_seconds() - longest_start;
}

// Warns about a launch that was probably started twice by mistake: the ranks would share GPUs and overwrite
// files. `own`: the jobs of this launch once it has started, to find another one that was started at the same
// moment; otherwise empty.
void LaunchAttempt::tell_same_launch(const std::vector<Job>& own) {
  const std::string command = mask_command(request_.command);
  std::map<JobId, int> keys;                 // the first key of each launch
  std::map<JobId, SameLaunchRuns> launches;  // those that run the same command here
  for (const Job& job : stored_jobs(core_, {.unfinished_only = true, .hidden = false})) {
    if (!job.launch || job.elsewhere || (!own.empty() && job.key >= own.front().key)) {
      continue;
    }
    keys.try_emplace(*job.launch, job.key);
    const auto server = std::ranges::find(servers_, job.server, &config::Server::name);
    if (job.command != command || server == servers_.end() ||
        !seems_to_run(job, answers_[static_cast<std::size_t>(server - servers_.begin())])) {
      continue;
    }
    SameLaunchRuns& event = launches[*job.launch];
    event.key = keys.at(*job.launch);
    if (std::ranges::find(event.servers, job.server) == event.servers.end()) {
      event.servers.push_back(job.server);
    }
  }
  for (const auto& [launch, event] : launches) {
    if (same_launches_.insert(launch).second) {
      core_.tell(event);
    }
  }
}

jobs::StartResult LaunchAttempt::start_jobs(const Plan& plan, const std::optional<wire::LaunchSpec>& launch) {
  const StepTimer timer(starting_, "start", "");
  std::vector<jobs::NewJob> jobs = new_jobs(plan);
  if (launch && launch->notifies) {
    jobs.front().notify = make_notify_spec(plan);
  }
  jobs::StartResult result = jobs::start(core_.site(), std::move(jobs), launch);
  std::ranges::transform(result.errors, result.errors.begin(),
                         [&](const Error& error) { return name_holders(core_, error); });
  return result;
}

LaunchResult LaunchAttempt::start() {
  freeze();  // while code_check_ reads the project here
  if (request_.verify_sync) {
    verify_sync();
  }
  announce_questions();
  LaunchResult result;
  result.plan = plan();
  check_code();
  judge_leases();
  judge_servers(result.plan);
  if (request_.check && request_.tree.empty()) {
    check_script(core_, servers_, request_.python ? with_python(request_.command) : request_.command,
                 request_.env, request_.image, changed_);
  }
  if (request_.check) {
    tell_same_launch({});
  }
  ready_containers();
  const std::optional<wire::LaunchSpec> lifeline = plan_lifeline(result.plan);
  LaunchMemory memory(core_, request_, result.plan, git_, setups(result.plan), steps());
  jobs::StartResult started = start_jobs(result.plan, lifeline);
  result.jobs = std::move(started.jobs);
  result.errors = std::move(started.errors);
  const std::string notified = !core_.config.notify       ? ""
                               : lacks_python_to_notify() ? "not sent: the first server has no Python"
                               : !lifeline                ? "not sent: the launch has no lifeline"
                                                          : "pending";
  if (request_.check && !result.jobs.empty()) {
    tell_same_launch(result.jobs);
  }
  memory.started(result.jobs, starting_, notified);
  core_.tell(Launched{result});
  if (started.unsaved) {
    core_.tell(StoreProblem{started.unsaved->message()});
  }
  if (!result.errors.empty()) {
    core_.tell(PartsFailed{result.errors});
  }
  const bool some_run = std::ranges::any_of(result.jobs, [](const Job& job) { return !is_final(job.state); });
  if (init_file_ && (result.errors.empty() || (!request_.end_others && some_run))) {
    init_file_->keep();
  }
  if (!result.errors.empty() && request_.end_others) {
    end_started(result.jobs);
  } else if (result.errors.empty() && lifeline && request_.await_lifelines) {
    await_lifelines(*lifeline, result.jobs);
  }
  return result;
}

namespace {

Plan plan(Core& core, const LaunchRequest& request) {
  check_name(request.name);
  if (const auto login = login_of(core, request)) {
    GitState git = ask_git(core);
    return plan_on_slurm(*login, request, commit_of(git));
  }
  LaunchAttempt attempt(core, request, {}, false);
  Plan plan = attempt.plan();
  attempt.judge_leases();
  return plan;
}

}  // namespace

LaunchResult launch(Core& core, const LaunchRequest& request, GitState git, bool code_was_sent) {
  check_name(request.name);
  if (const auto login = login_of(core, request)) {
    return launch_on_slurm(core, *login, request, std::move(git), code_was_sent);
  }
  return LaunchAttempt(core, request, std::move(git), code_was_sent).start();
}

LaunchResult launch(Core& core, const LaunchRequest& request) {
  return launch(core, request, ask_git(core), false);
}

}  // namespace remote::project

namespace remote {

Plan Project::plan(const LaunchRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::plan(core, request); });
}

LaunchResult Project::launch(const LaunchRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    project::adopt_labml_jobs(core);  // so that their keys are not reused
    return project::launch(core, request);
  });
}

}  // namespace remote
