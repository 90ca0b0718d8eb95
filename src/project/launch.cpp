// Launching: connect to all servers, look at them, plan, start, and end what started when not all did.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "jobs/helpers.hpp"
#include "jobs/places.hpp"
#include "jobs/refresh.hpp"
#include "jobs/start.hpp"
#include "launch/command.hpp"
#include "launch/host_filter.hpp"
#include "launch/plan.hpp"
#include "project/check/judge.hpp"
#include "project/code_check.hpp"
#include "project/core.hpp"
#include "project/init_file.hpp"
#include "project/new_job.hpp"
#include "project/slurm.hpp"
#include "servers/container.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"
#include "servers/init_file.hpp"
#include "servers/probe.hpp"
#include "servers/python_env.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

// A launch on its way: the servers that take part, and the connections to them.
class Launching {
 public:
  Launching(Core& core, const LaunchRequest& request) : core_(core), request_(request) {
    if (trim(request.command).empty()) {
      throw Error::usage("launch", "the command is empty", "give the command that every rank runs");
    }
    if (request.mpi_over_ssh && !launch::needs_mpi(request.launcher)) {
      throw Error::usage("launch", "the launcher " + request.launcher + " has no agent of mpirun",
                         "use the launcher mpi");
    }
    if (!request.end_others && launch::needs_mpi(request.launcher)) {
      throw Error::usage("launch", "mpirun ends the other ranks when one has failed, so they cannot be left",
                         "let them be ended, or use the launcher ranks");
    }
    launch::resolve_nproc(request.nproc, 1, 1);  // wrong words are found before any server is asked
    choose_servers();
    if (servers_.empty()) {
      throw Error::usage("launch", "configs.yaml has no servers", "add one under `servers:`");
    }
    if (request.tell_changes && !request.verify_sync) {  // that compares all contents
      code_check_.emplace(core);
    }
    for (const config::Server& server : servers_) {
      servers::container_of(server, request.image);  // as above
    }
    connect_all();
  }

  Plan plan();
  // Tells what was found by which the launch would suffer. Throws Error where it would fail.
  void judge_servers();
  LaunchResult start();

 private:
  void choose_servers();
  void need_all(const auto& outcomes, const std::string& reason, const std::string& hint = "");
  void connect_all();
  std::unique_ptr<ssh::Connection> connect(const config::Server& server) const {
    return core_.connector().connect(server, core_.cancel());
  }
  void verify_sync();
  void announce_questions();
  // The value that the user gave this variable.
  std::optional<std::string> given_variable(const std::string& name) const;
  void ready_containers();
  std::vector<servers::ProbeAnswer> probe_all(const std::string& master_addr);
  launch::Node node_of(const config::Server& server, const servers::ProbeAnswer& answer,
                       const std::string& master_addr);
  std::optional<jobs::Lifeline> plan_lifeline(const Plan& plan);
  std::vector<jobs::NewJob> new_jobs(const Plan& plan) const;
  std::string ssh_ways(const Plan& plan, const std::vector<jobs::NewJob>& jobs) const;
  void end_started(std::vector<Job>& jobs);
  void await_lifelines(const jobs::Lifeline& lifeline, const std::vector<Job>& ranks);

  Core& core_;
  const LaunchRequest& request_;
  std::vector<config::Server> servers_;
  std::map<std::string, LaunchHost> hosts_;  // by server, where LaunchRequest::hosts has it
  std::optional<CodeCheck> code_check_;
  std::vector<ssh::LoginFacts> logins_;                      // by server
  std::string first_address_;                                // by which this machine reaches the first server
  std::vector<servers::ProbeAnswer> answers_;                // by server, once plan() has asked
  std::vector<double> clocks_ahead_;                         // likewise, in seconds
  std::optional<InitFile> init_file_;                        // from plan() on
  std::map<std::string, servers::ContainerRun> containers_;  // by server that has one, once they are ready
};

void Launching::choose_servers() {
  if (request_.hosts.empty()) {
    servers_ = core_.servers(request_.servers);
    return;
  }
  if (!request_.servers.empty()) {
    throw Error::usage("launch", "both servers and hosts are named", "keep one of them");
  }
  for (const LaunchHost& host : resolve_hosts(core_, request_.hosts)) {
    servers_.push_back(core_.servers({host.name}).front());
    hosts_[host.name] = host;
  }
}

// A launch needs all its servers: without one the others would wait for it in vain. Tells of each that
// failed.
void Launching::need_all(const auto& outcomes, const std::string& reason, const std::string& hint) {
  bool complete = true;
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) {
      complete = false;
      core_.tell(PartFailed{*outcome.error});
    }
  }
  if (!complete) {
    throw Error("nothing was started", reason, hint);
  }
}

void Launching::connect_all() {
  const auto outcomes =
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t) {
        const auto connection = core_.connector().connect(server, core_.cancel());
        return std::pair(connection->peer_address(), connection->login());
      });
  need_all(outcomes, "a launch needs all of its servers", "name those that are to take part");
  first_address_ = outcomes.front().value->first;
  for (const auto& outcome : outcomes) {
    logins_.push_back(outcome.value->second);
  }
}

// Ranks that run different code hang, or train something that nobody wrote.
void Launching::verify_sync() {
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
    throw Error("nothing was started", "the project on the servers is not what it is here",
                "files that are newer on a server stay as they are there")
        .mended_by(Remedy::send_project);
  }
}

// The engine and the image, on every server, before a rank starts anywhere: the others would wait for one
// without.
void Launching::ready_containers() {
  std::vector<config::Server> contained;
  std::vector<Container> wanted;
  for (const config::Server& server : servers_) {
    if (auto container = servers::container_of(server, request_.image)) {
      contained.push_back(server);
      wanted.push_back(std::move(*container));
    }
  }
  const auto outcomes = servers::fan_out(
      contained, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        return servers::ready_container(*connect(server), core_.config, server, wanted[index],
                                        core_.cancel());
      });
  need_all(outcomes, "a launch needs its container on all of its servers");
  for (std::size_t i = 0; i < contained.size(); ++i) {
    containers_.emplace(contained[i].name, *outcomes[i].value);
  }
}

// What follows the probe, so that it is made ready beside it.
void Launching::announce_questions() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto connection = connect(servers_[i]);
    connection->expect();  // the start
    // The lifeline's word; where nobody waits for that, the output is followed. The first server is not
    // asked.
    if (!request_.await_lifelines || (request_.end_others && i > 0)) {
      connection->expect();
    }
  }
}

std::vector<servers::ProbeAnswer> Launching::probe_all(const std::string& master_addr) {
  clocks_ahead_.assign(servers_.size(), 0);
  return servers::values_of(
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        servers::ProbeRequest request;
        request.master_addr = master_addr;
        request.activate = servers::activation(core_.config, server);
        // An image is not looked into.
        request.mpi = launch::needs_mpi(request_.launcher) && !servers::container_of(server, request_.image);
        if (index == 0) {
          request.master_port = request_.master_port.value_or(0);
        }
        if (request_.check) {
          request.project = core_.config.project_path_on(server);
          request.environment = servers::environment_folder(core_.config, server);
        }
        const auto connection = connect(server);
        const std::int64_t asked = servers::wall_ms();
        servers::ProbeAnswer answer =
            servers::run_action(*connection, servers::probe_action(request), core_.cancel());
        if (answer.clock) {
          clocks_ahead_[index] = servers::clock_difference(*answer.clock, asked, servers::wall_ms());
        }
        return answer;
      }));
}

std::optional<launch::MpiRuntime> mpi_of(const servers::ProbeAnswer& answer) {
  if (!answer.mpi) {
    return std::nullopt;
  }
  using Kind = launch::MpiRuntime::Kind;
  return launch::MpiRuntime{.kind = answer.mpi->hydra ? Kind::hydra : Kind::open_mpi,
                            .version = answer.mpi->version,
                            .has_daemon = answer.mpi->has_daemon,
                            .root = answer.mpi->root};
}

launch::Node Launching::node_of(const config::Server& server, const servers::ProbeAnswer& answer,
                                const std::string& master_addr) {
  if (!answer.resolved) {
    throw Error(
        "cannot launch", fmt::format("this server cannot resolve the master's address '{}'", master_addr),
        fmt::format("give server '{}' an internal_address in configs.yaml: an IP address by which the others "
                    "reach it",
                    servers_.front().name))
        .on(server.name);
  }
  // All that are expected, or at least those that are listed.
  int expected = server.gpus.value_or(answer.gpus);
  for (const int index : server.gpu_indices) {
    expected = std::max(expected, index + 1);
  }
  if (expected != answer.gpus) {
    core_.tell(GpuCountDiffers{server.name, expected, answer.gpus});
  }
  Env env = server.variables();
  std::optional<int> slots;
  if (const auto host = hosts_.find(server.name); host != hosts_.end()) {
    slots = host->second.slots;
    launch::set_gpus(host->second, answer.gpus, server.gpu_indices, request_.env, env);
  }
  Env all = env;
  all.insert(all.end(), request_.env.begin(), request_.env.end());
  return {.server = server.name,
          .gpus = answer.gpus,
          .cpus = answer.cpus,
          .nproc = slots ? *slots : launch::resolve_nproc(request_.nproc, answer.gpus, answer.cpus, all),
          .env = std::move(env),
          .init_url = init_file_ ? servers::init_file_url(init_file_->folder_on(server.name)) : "",
          .container = servers::container_of(server, request_.image),
          .interface = answer.interface,
          .mpi = mpi_of(answer)};
}

std::optional<std::string> Launching::given_variable(const std::string& name) const {
  const auto found = std::find_if(request_.env.rbegin(), request_.env.rend(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == request_.env.rend() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

Plan Launching::plan() {
  const config::Server& master = servers_.front();
  launch::LaunchSpec spec{
      .command = request_.command,
      .launcher = request_.launcher,
      .master_addr = given_variable("MASTER_ADDR").value_or(master.internal_address.value_or(first_address_)),
      .run_id = JobId::random().text(),
      .env = request_.env,
      .tags = request_.tags,
      .init_method = request_.init_method,
      .local_rank_arg = request_.local_rank_arg,
      .mpi_over_ssh = request_.mpi_over_ssh,
      .torch = request_.python,
      .torchrun = request_.torchrun};
  answers_ = probe_all(spec.master_addr);
  if (launch::needs_port(spec.launcher)) {
    try {
      spec.master_port = servers::choose_port(answers_.front(), request_.master_port);
    } catch (const Error& error) {
      throw error.on(master.name);
    }
  }
  if (request_.init_method == InitMethod::file) {
    init_file_.emplace(core_, servers_, request_.init_dir, *JobId::parse(spec.run_id));
  }
  std::vector<launch::Node> nodes;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    nodes.push_back(node_of(servers_[i], answers_[i], spec.master_addr));
  }
  return launch::make_plan(spec, nodes);
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

// nullopt where there can be none. Tells which servers are without one.
std::optional<jobs::Lifeline> Launching::plan_lifeline(const Plan& plan) {
  // mpirun reaches the other servers by it, whatever is to happen after a failure.
  const bool brings_orders =
      !request_.mpi_over_ssh && plan.processes.size() > 1 &&
      std::ranges::none_of(plan.processes, &std::string::empty, &PlannedProcess::mpi_host);
  if (!request_.end_others && !brings_orders) {
    return std::nullopt;
  }
  jobs::Lifeline lifeline;
  lifeline.token = random_hex(32) + random_hex(32);
  lifeline.address = plan.master_addr;
  lifeline.grace_s = static_cast<int>(request_.failure_grace.count());
  lifeline.timeout_s = static_cast<int>(request_.lost_after.count());
  lifeline.needed = plan.needed.value_or(0);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (std::ranges::find(plan.processes, servers_[i].name, &PlannedProcess::server) ==
        plan.processes.end()) {
      continue;  // nothing runs there that would have to be ended
    }
    if (can_hold_lifeline(answers_[i].python)) {
      lifeline.servers.push_back(servers_[i].name);
      lifeline.activate.emplace(servers_[i].name, servers::activation(core_.config, servers_[i]));
      continue;
    }
    const bool for_all = i == 0 && servers_.size() > 1;
    if (brings_orders) {
      throw Error("cannot launch with mpi",
                  "there is no Python of 3.6 or later, which brings mpirun's orders to the other servers",
                  "install python3 there")
          .on(servers_[i].name)
          .mended_by(Remedy::use_mpi_ssh);
    }
    core_.tell(NoLifeline{{{servers_[i].name, NoLifeline::Cause::no_python, ""}}, for_all});
    if (for_all) {
      return std::nullopt;
    }
  }
  if (lifeline.servers.size() > 1) {
    if (!answers_.front().second_port && brings_orders) {
      throw Error("cannot launch with mpi", "no port is free by which the other servers could reach it")
          .on(servers_.front().name);
    }
    if (!answers_.front().second_port) {
      core_.tell(NoLifeline{{{servers_.front().name, NoLifeline::Cause::no_port, ""}}, true});
      return std::nullopt;
    }
    lifeline.port = *answers_.front().second_port;
  }
  for (const PlannedProcess& process : plan.processes) {
    if (!process.mpi_host.empty()) {  // by ssh too: it tells the others when nothing more comes
      lifeline.mpi_hosts.emplace(process.mpi_host, process.server);
    }
  }
  lifeline.whole = lifeline.servers.size() == servers_.size();
  return lifeline.servers.empty() ? std::nullopt : std::optional(lifeline);
}

// How the first server reaches the jobs on the others by ssh; see mpi_ssh.sh.
std::string Launching::ssh_ways(const Plan& plan, const std::vector<jobs::NewJob>& jobs) const {
  std::string ways;
  for (std::size_t i = 1; i < plan.processes.size(); ++i) {
    const auto server = std::ranges::find(servers_, plan.processes[i].server, &config::Server::name);
    const ssh::LoginFacts& login = logins_[static_cast<std::size_t>(server - servers_.begin())];
    const Job& job = jobs[i].job;
    std::string folder =
        fmt::format("{}/{}/{}", job.remote_folder.project, job.remote_folder.jobs_folder, job.id.text());
    if (folder.starts_with("~/")) {
      folder.erase(0, 2);  // ssh begins in the home folder
    }
    ways += fmt::format("{} {} {} {} {}\n", plan.processes[i].mpi_host, login.user,
                        server->internal_address.value_or(login.host), login.port, folder);
  }
  return ways;
}

std::vector<jobs::NewJob> Launching::new_jobs(const Plan& plan) const {
  std::vector<jobs::NewJob> all;
  const std::string shown = launch::mask_command(request_.command);
  for (const PlannedProcess& process : plan.processes) {
    const auto server = std::ranges::find(servers_, process.server, &config::Server::name);
    const auto found = containers_.find(process.server);
    const auto container = found == containers_.end() ? std::nullopt : std::optional(found->second);
    jobs::NewJob job =
        new_job(core_.config, *server, process.command, process.env,
                request_.enable_stacks.value_or(request_.python), container, process.is_torch_agent);
    if (!process.helpers.empty()) {
      job.process.activate +=
          "\n" + jobs::helpers_text(core_.config.remote_jobs_folder_name, process.helpers);
    }
    job.job.command = shown;
    set_tags(job.job, process.tags);
    job.job.launch = JobId::parse(plan.run_id);
    job.job.rank = process.rank;
    job.job.world_size = plan.world_size;
    if (process.is_torch_agent || !process.mpi_host.empty()) {
      job.job.ranks = process.ranks;
      // See torch_agent.py and mpi_rank.sh.
      job.job.labelled =
          process.is_torch_agent ? request_.enable_stacks.value_or(request_.python) : process.ranks > 1;
    }
    job.job.needed = plan.needed;
    if (init_file_) {
      job.init_file = servers::init_file_text(plan.processes.size(), init_file_->folder_on(process.server));
    }
    all.push_back(std::move(job));
  }
  if (request_.mpi_over_ssh) {
    all.front().process.activate += jobs::job_file_text("mpi-hosts", ssh_ways(plan, all));
  }
  return all;
}

// Ranks that started cannot get on without those that did not. Where the answer is missing they may have
// started, or start later: what is ended before its start never starts. `jobs` become what they are then.
void Launching::end_started(std::vector<Job>& jobs) {
  std::vector<Job> started;
  std::ranges::copy_if(jobs, std::back_inserter(started),
                       [](const Job& job) { return !is_final(job.state); });
  if (started.empty()) {
    return;
  }
  core_.tell(EndingRanks{});
  KillRequest request;
  request.by = jobs::by_launch;
  // Also after a Ctrl-C, which is a reason to end them; a second one ends this too.
  // One that has just fallen silent is not waited for long.
  const KillResult killed =
      kill(core_, started, request, Cancel(), std::chrono::ceil<std::chrono::seconds>(ask_limit));
  for (const Error& error : killed.errors) {
    core_.tell(PartFailed{error});
  }
  for (const KillResult::Entry& entry : killed.entries) {
    std::ranges::replace_if(
        jobs, [&](const Job& job) { return job.id == entry.job.id; }, entry.job);
  }
}

void Launching::await_lifelines(const jobs::Lifeline& lifeline, const std::vector<Job>& ranks) {
  // The first server is the one that the others are to reach.
  const std::vector<std::string> members(lifeline.servers.begin() + 1, lifeline.servers.end());
  const auto outcomes = servers::fan_out(members, std::identity(), [&](const std::string& name, std::size_t) {
    std::vector<Job> there;
    std::ranges::copy_if(ranks, std::back_inserter(there),
                         [&](const Job& job) { return job.server == name; });
    return jobs::refresh_for_lifeline(core_.config, core_.store, core_.connector(), there, core_.cancel());
  });
  std::vector<Job> news;
  for (const auto& outcome : outcomes) {
    // A server that is silent now is found out by the next question: its ranks have started.
    if (outcome.ok()) {
      news.insert(news.end(), outcome.value->begin(), outcome.value->end());
    }
  }
  tell_missing_lifelines(core_, news);
}

std::string where_and_what(const std::optional<Fix>& fix) {
  if (!fix) {
    return {};
  }
  const bool command = fix->where == Fix::Where::server || fix->where == Fix::Where::server_as_root;
  const char* where = fix->where == Fix::Where::server ? "look there with: " : "as root there: ";
  return command ? where + fix->text : fix->text;
}

void Launching::judge_servers() {
  if (!request_.check) {
    return;
  }
  bool fit = true;
  std::vector<Compared> compared;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const config::Server& server = servers_[i];
    const std::string jobs =
        core_.config.project_path_on(server) + "/" + core_.config.remote_jobs_folder_name;
    for (const Finding& finding : judge_launch(answers_[i], clocks_ahead_[i], jobs, logins_[i].user)) {
      if (finding.status == CheckStatus::fail) {
        fit = false;
        core_.tell(PartFailed{
            Error("it cannot run there", finding.detail, where_and_what(finding.fix)).on(server.name)});
      } else {
        core_.tell(CheckWarned{server.name, finding});
      }
    }
    if (!answers_[i].torch.empty() && !servers::container_of(server, request_.image)) {
      Compared& one = compared.emplace_back();
      one.server = server.name;
      one.facts.torch = answers_[i].torch;
    }
  }
  const auto differences = judge_same(compared);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    for (const Finding& finding : differences[i]) {
      if (finding.status == CheckStatus::fail) {  // another major version
        core_.tell(CheckWarned{compared[i].server, finding});
      }
    }
  }
  if (!fit) {
    throw Error("nothing was started", "a launch needs servers that are fit for it")
        .mended_by(Remedy::skip_check);
  }
}

LaunchResult Launching::start() {
  if (code_check_) {
    code_check_->tell(core_, servers_, logins_);
  }
  if (request_.verify_sync) {
    verify_sync();
  }
  announce_questions();
  LaunchResult result;
  result.plan = plan();
  judge_servers();
  ready_containers();
  const std::optional<jobs::Lifeline> lifeline = plan_lifeline(result.plan);
  jobs::StartResult started = jobs::start(core_.config, core_.store, core_.connector(), new_jobs(result.plan),
                                          core_.cancel(), lifeline ? &*lifeline : nullptr);
  result.jobs = std::move(started.jobs);
  result.errors = std::move(started.errors);
  core_.tell(Launched{result});
  for (const Error& error : result.errors) {
    core_.tell(PartFailed{error});
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

}  // namespace

Plan plan(Core& core, const LaunchRequest& request) {
  if (const auto login = login_of(core, request)) {
    return plan_on_slurm(*login, request);
  }
  return Launching(core, request).plan();
}

LaunchResult launch(Core& core, const LaunchRequest& request) {
  if (const auto login = login_of(core, request)) {
    return launch_on_slurm(core, *login, request);
  }
  return Launching(core, request).start();
}

}  // namespace remote::project
