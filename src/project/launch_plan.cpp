// Makes the plan of a launch from the facts about its servers.

#include <algorithm>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "launch/host_filter.hpp"
#include "project/launch_attempt.hpp"
#include "rules/usable.hpp"
#include "servers/fanout.hpp"
#include "servers/init_file.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

std::optional<launch::MpiRuntime> mpi_of(const servers::FactsAnswer& answer) {
  if (!answer.mpi) {
    return std::nullopt;
  }
  using Kind = launch::MpiRuntime::Kind;
  return launch::MpiRuntime{.kind = answer.mpi->hydra ? Kind::hydra : Kind::open_mpi,
                            .version = answer.mpi->version,
                            .has_daemon = answer.mpi->has_daemon,
                            .root = answer.mpi->root};
}

// Whether configs.yaml lists GPUs for the server but none of them exist.
bool lacks_listed_gpus(const config::Server& server, const std::vector<int>& gpus) {
  return !server.gpu_indices.empty() && std::ranges::none_of(server.gpu_indices, [&](int index) {
    return std::ranges::find(gpus, index) != gpus.end();
  });
}

const char* set_by(HiddenBy by) {
  return by == HiddenBy::login ? " of the login" : by == HiddenBy::prologue ? " of the prologue" : "";
}

// Whether a variable hides all GPUs on purpose.
bool hides_all_gpus(const Env& env) {
  return std::ranges::any_of(env, [](const auto& variable) {
    return std::ranges::count(rules::visibility_variables, variable.first) > 0 &&
           (trim(variable.second).empty() || trim(variable.second).starts_with('-'));
  });
}

// Throws Error if the prologue sets the visible GPUs of a job, because it runs after the launch has set them.
void check_prologue(const config::Server& server, const GpuFacts& facts) {
  const auto own = std::ranges::find(facts.visible, true, &VisibleDevices::by_prologue);
  if (own != facts.visible.end()) {
    throw Error::usage(
        "cannot choose GPUs",
        fmt::format("the prologue, or the Python environment, sets {} for each job", own->variable),
        "remove it there, or let it choose the GPUs")
        .on(server.name);
  }
}

}  // namespace

std::vector<servers::FactsAnswer> LaunchAttempt::ask_all(const std::string& master_addr) {
  looking_.resize(servers_.size());
  return servers::values_of(
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        const StepTimer timer(looking_[index], "look", server.name);
        servers::FactsRequest request{
            .wanted = {.project = core_.config.project_path_on(server),
                       .environment = servers::environment_folder(core_.config, server),
                       .variables = servers::to_wire(server.variables()),
                       .activate = servers::activation(core_.config, server)},
            .timeout = std::chrono::seconds(30)};
        wire::FactsRequest& wanted = request.wanted;
        wanted.machine = true;
        wanted.python = false;
        wanted.gpus = wire::GpuDetail::brief;
        wanted.route_to = master_addr;
        // Images are not inspected.
        wanted.mpi = launch::needs_mpi(request_.launcher) && !servers::container_of(server, request_.image);
        if (request_.lease.any()) {
          request.lease = servers::to_terms(request_.lease, gpus_to_lease(server, nullptr));
        }
        if (index == 0) {
          wanted.port = request_.master_port.value_or(0);
        }
        if (request_.check) {
          wanted.clock = wanted.logind = wanted.others = true;
          wanted.jobs = core_.config.remote_jobs_folder_name;
          wanted.disks = {wire::DiskPlace::project, wire::DiskPlace::shm};
        }
        if (prepared_) {
          prepared_->add_to(wanted, server);
        }
        if (code_check_) {
          code_check_->add_to(request, server);
        }
        return servers::ask_facts(*connect(server), request, core_.cancel());
      }));
}

void LaunchAttempt::check_gpus(const config::Server& server, const ServerFacts& facts, const LaunchHost* host,
                               const Env& env) const {
  const bool are_chosen = request_.lease.gpus > 0 || (host != nullptr && !host->gpus.empty());
  if (are_chosen && !servers::container_of(server, request_.image)) {
    check_prologue(server, facts.gpus);
  }
  const bool are_counted =
      (host == nullptr || !host->slots) &&
      (request_.nproc == RanksPerServer(OnePer::gpu) ||
       (request_.nproc == RanksPerServer(OnePer::automatic) && request_.lease.cpus == 0)) &&
      !hides_all_gpus(env) && !hides_all_gpus(with_set_variables(request_.env, request_.command));
  if (are_chosen || are_counted) {
    require_driver(server, facts);
  }
}

launch::Node LaunchAttempt::node_of(const config::Server& server, const servers::FactsAnswer& answer,
                                    const std::string& master_addr) {
  if (!answer.route || answer.route->address.empty()) {
    throw Error(
        "cannot launch", fmt::format("this server cannot resolve the master's address '{}'", master_addr),
        fmt::format(
            "give server '{}' an internal_address in configs.yaml: an IP address that the others reach",
            servers_.front().name))
        .on(server.name);
  }
  const UsableCpus cpus = rules::count_cpus(answer.facts);
  GpuFacts gpu_facts = answer.facts.gpus;
  if (servers::container_of(server, request_.image)) {
    gpu_facts.visible.clear();  // a container only has the variables that the launch sets
  }
  const UsableGpus gpus = rules::count_gpus(gpu_facts);
  // All expected GPUs, or at least those listed.
  const int found = server.gpu_indices.empty() ? gpus.count() : static_cast<int>(gpus.there.size());
  int expected = server.gpus.value_or(found);
  for (const int index : server.gpu_indices) {
    expected = std::max(expected, index + 1);
  }
  if (expected != found) {
    core_.tell(GpuCountDiffers{server.name, expected, found});
  }
  const LeaseRequest& lease = request_.lease;
  const Env given = with_set_variables(request_.env, request_.command);
  Env env = lease.gpus > 0 ? server.env : server.variables();
  std::optional<int> slots;
  const auto named = hosts_.find(server.name);
  const LaunchHost* host = named == hosts_.end() ? nullptr : &named->second;
  check_gpus(server, answer.facts, host, env);
  if (host != nullptr) {
    slots = host->slots;
    if (lease.gpus == 0) {
      launch::set_gpus(*host, gpus, server.gpu_indices, given, env);
    }
  }
  if (lease.any()) {
    leases_[server.name] = servers::to_terms(lease, gpus_to_lease(server, &gpus));
  }
  Env all = env;
  all.insert(all.end(), given.begin(), given.end());
  const UsableGpus seen = rules::count_gpus(gpu_facts, all);
  const bool automatic = request_.nproc == RanksPerServer(OnePer::automatic);
  const int ranks_by_gpu = lease.gpus > 0 ? lease.gpus : automatic && lease.cpus > 0 ? 0 : seen.count();
  const int ranks_by_cpu = lease.cpus > 0 ? lease.cpus : cpus.count;
  const int nproc = slots ? *slots : launch::number_of_ranks(request_.nproc, ranks_by_gpu, ranks_by_cpu);
  if (nproc == 0) {
    throw Error::usage("cannot start one rank for each GPU",
                       seen.hidden_by == HiddenBy::nobody
                           ? "no GPU was found"
                           : fmt::format("{}{} hides every GPU", seen.variable, set_by(seen.hidden_by)),
                       "ask for a number of ranks, or for one for each core")
        .mended_by(Remedy::check_server)
        .on(server.name);
  }
  const bool hides_gpus = std::ranges::count(given, "CUDA_VISIBLE_DEVICES", &Env::value_type::first) > 0;
  if (automatic && !slots && !hides_gpus && lacks_listed_gpus(server, gpus.there)) {
    throw Error::usage(
        "cannot start one rank for each GPU",
        fmt::format("configs.yaml lists GPU {}, but the server has {}", server.gpu_indices.front(),
                    gpus.there.empty() ? "none" : std::to_string(gpus.there.size())),
        "correct `gpus` there, or ask for a number of ranks")
        .mended_by(Remedy::check_server)
        .on(server.name);
  }
  if (std::holds_alternative<OnePer>(request_.nproc) && !slots) {
    chosen_.push_back({.server = server.name,
                       .automatic = automatic,
                       .ranks = nproc,
                       .per = request_.nproc != RanksPerServer(OnePer::core) && ranks_by_gpu > 0
                                  ? OnePer::gpu
                                  : OnePer::core,
                       .gpus = lease.gpus > 0 ? UsableGpus() : seen,
                       .cpus = lease.cpus > 0 ? UsableCpus() : cpus});
  }
  return {.server = server.name,
          .gpus = gpus.count(),
          .cpus = cpus.count,
          .nproc = nproc,
          .leased_cpus = lease.cpus,
          .env = std::move(env),
          .init_url = init_file_ ? servers::init_file_url(init_file_->folder_on(server.name)) : "",
          .container = servers::container_of(server, request_.image),
          .interface = answer.route->interface,
          .mpi = mpi_of(answer)};
}

std::optional<std::string> LaunchAttempt::given_variable(const std::string& name) const {
  const auto found = std::find_if(request_.env.rbegin(), request_.env.rend(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == request_.env.rend() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

Plan LaunchAttempt::plan() {
  const config::Server& master = servers_.front();
  launch::LaunchSpec spec{
      .command = request_.command,
      .launcher = request_.launcher,
      .master_addr = given_variable("MASTER_ADDR").value_or(master.internal_address.value_or(first_address_)),
      .run_id = JobId::random().text(),
      .rendezvous_key = request_.enable_stacks.value_or(true) ? random_hex(64) : "",
      .env = request_.env,
      .tags = request_.tags,
      .init_method = request_.init_method,
      .local_rank_arg = request_.local_rank_arg,
      .mpi_over_ssh = request_.mpi_over_ssh,
      .restarts = request_.restarts > 0,
      .torch = request_.python,
      .torchrun = request_.torchrun};
  GitState asked = git_.valid() ? GitState() : ask_git(core_);  // for plan() alone
  if (request_.check) {
    remember_older_jobs();
  }
  answers_ = ask_all(spec.master_addr);
  spec.commit = commit_of(git_.valid() ? git_ : asked);
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
  const std::size_t active = servers_.size() - spares_;
  Plan plan = launch::make_plan(spec, {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(active)});
  if (spares_ > 0) {
    plan_spares(plan, launch::make_plan(spec, nodes), nodes);
  }
  plan.chosen = std::move(chosen_);
  return plan;
}

// A spare server gets the processes that one more server would run; it gets its node rank and ranks when it
// replaces another server.
void LaunchAttempt::plan_spares(Plan& plan, const Plan& with_spares,
                                const std::vector<launch::Node>& nodes) const {
  for (const launch::Node& node : nodes) {
    if (node.nproc != nodes.front().nproc) {
      throw Error::usage(
          "cannot launch with spares",
          fmt::format("{} has {} and {} {}: a spare takes the place of any other server",
                      nodes.front().server, counted(static_cast<std::size_t>(nodes.front().nproc), "rank"),
                      node.server, node.nproc),
          "give all of them as many ranks (--nproc-per-node), or leave the spare out of `spares`");
    }
  }
  plan.spares.assign(with_spares.processes.begin() + static_cast<std::ptrdiff_t>(plan.processes.size()),
                     with_spares.processes.end());
}

}  // namespace remote::project
