#include "launch/plan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "launch/launchers.hpp"
#include "launch/tags.hpp"

namespace remote::launch {
namespace {

// Variables that the launch itself sets, and the one by which the supervisor recognizes a job's processes.
constexpr std::array<std::string_view, 11> reserved{
    "MASTER_PORT", "WORLD_SIZE",       "RANK",      "LOCAL_RANK",      "LOCAL_WORLD_SIZE", "NODE_RANK",
    "GROUP_RANK",  "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "REMOTE_JOB_ID"};
// Variables that the user may override, with the same value for all ranks.
constexpr std::array<std::string_view, 3> same_everywhere{"MASTER_ADDR", "RUN_UUID", "TORCHELASTIC_RUN_ID"};

void check_env(const Env& env, bool of_one_server) {
  for (const auto& [name, value] : env) {
    check_variable(name);
    if (value.find('\0') != std::string::npos) {
      throw Error::usage(fmt::format("cannot set the variable '{}'", name), "its value has a NUL byte",
                         "take the byte out");
    }
    if (std::ranges::find(reserved, name) != reserved.end() ||
        (of_one_server && std::ranges::find(same_everywhere, name) != same_everywhere.end())) {
      std::string hint = "leave it out of the environment";
      if (name == "MASTER_PORT") {
        hint = "choose the master's port instead";
      } else if (name == "MASTER_ADDR") {
        hint = "set internal_address of the first server in configs.yaml";
      } else if (name == "WORLD_SIZE" || name == "LOCAL_WORLD_SIZE") {
        hint = "set nproc_per_node and choose the servers instead";
      }
      throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                         "the launch sets it for each rank", hint);
    }
  }
}

// INIT_METHOD must not be set by both the user and the launch.
void check_init_method(const Env& env) {
  if (std::ranges::find(env, "INIT_METHOD", &Env::value_type::first) != env.end()) {
    throw Error::usage("cannot set the variable 'INIT_METHOD'", "the launch sets it already",
                       "leave one of the two out");
  }
}

// "tcp://10.0.0.1:29500"; an IPv6 address is in brackets.
std::string tcp_url(const LaunchSpec& spec) {
  return "tcp://" + host_and_port(spec.master_addr, spec.master_port);
}

bool sets(const Env& env, std::string_view name) {
  return std::any_of(env.begin(), env.end(), [&](const auto& pair) { return pair.first == name; });
}

}  // namespace

bool is_reserved(std::string_view name) {
  return std::ranges::find(reserved, name) != reserved.end();
}

void EnvBuilder::set(const std::string& name, const std::string& value) {
  for (auto& [known, old] : env_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  env_.emplace_back(name, value);
}

void EnvBuilder::set_default(const Env& user, const std::string& name, const std::string& value) {
  if (!sets(user, name)) {
    defaults_.emplace_back(name, value);
  }
}

void add_common(EnvBuilder& env, const LaunchSpec& spec, const Node& node) {
  if (spec.init_method != InitMethod::env) {
    env.set("INIT_METHOD", spec.init_method == InitMethod::tcp ? tcp_url(spec) : node.init_url);
  }
  Env user = node.env;
  user.insert(user.end(), spec.env.begin(), spec.env.end());
  if (node.nproc > 1 || node.leased_cpus > 0) {
    env.set_default(user, "OMP_NUM_THREADS", std::to_string(std::max(1, node.leased_cpus / node.nproc)));
  }
  env.set_default(user, "PYTHONUNBUFFERED", "1");
  if (!spec.commit.empty()) {
    env.set("REMOTE_COMMIT", spec.commit);
  }
  if (node.interface) {
    env.set_default(user, "GLOO_SOCKET_IFNAME", *node.interface);
    env.set_default(user, "NCCL_SOCKET_IFNAME", "=" + *node.interface);  // without "=" it is a prefix
  }
  for (const auto& [name, value] : user) {
    env.set(name, value);
  }
}

std::vector<std::string> tags_of(const LaunchSpec& spec, bool master) {
  std::vector<std::string> tags = spec.tags;
  if (tags.empty()) {
    tags = default_tags(spec.command, spec.torch ? std::vector<std::string>{"distributed", "torch"}
                                                 : std::vector<std::string>{"distributed"});
  }
  if (master && std::find(tags.begin(), tags.end(), "master") == tags.end()) {
    tags.emplace_back("master");
  }
  return tags;
}

int number_of_ranks(const RanksPerServer& ranks, int gpus, int cpus) {
  if (const int* number = std::get_if<int>(&ranks)) {
    return *number;
  }
  if (ranks == RanksPerServer(OnePer::gpu)) {
    return gpus;
  }
  return ranks == RanksPerServer(OnePer::automatic) && gpus > 0 ? gpus : std::max(cpus, 1);
}

Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes) {
  return make_plan(spec, nodes, planner_of(spec.launcher));
}

Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes, const Planner& planner) {
  if (nodes.empty()) {
    throw Error::usage("nothing to launch on", "no server is chosen").mended_by(Remedy::name_servers);
  }
  if (trim(spec.command).empty()) {
    throw Error::usage("nothing to launch", "the command is empty", "say what to run, such as train.py");
  }
  if (spec.command.find('\0') != std::string::npos) {
    throw Error::usage("cannot launch this command", "it has a NUL byte", "take the byte out");
  }
  if (spec.master_addr.empty()) {
    throw Error::usage("cannot launch", "the address of the first server is not known",
                       "set its internal_address in configs.yaml");
  }
  if (planner.needs_port && (spec.master_port < 1 || spec.master_port > 65535)) {
    throw Error::usage(fmt::format("wrong master_port {}", spec.master_port),
                       "a port is a number from 1 to 65535");
  }
  if (spec.init_method == InitMethod::tcp && !planner.needs_port) {
    throw Error::usage("cannot launch",
                       fmt::format("the launcher {} has no port for tcp://", to_string(spec.launcher)),
                       "let the ranks find each other by a file, or by the environment");
  }
  check_env(spec.env, false);
  Plan plan{spec.launcher, spec.run_id, spec.master_addr, spec.master_port};
  for (const Node& node : nodes) {
    check_env(node.env, true);
    if (spec.init_method != InitMethod::env) {
      check_init_method(spec.env);
      check_init_method(node.env);
    }
    if (node.nproc < 1 || node.nproc > most_ranks_per_server) {
      throw Error::usage("cannot launch", fmt::format("{} ranks on {}", node.nproc, node.server),
                         fmt::format("start from 1 to {} ranks on every server, or leave the server out",
                                     most_ranks_per_server));
    }
    plan.world_size += node.nproc;
  }
  const TorchrunOptions& torchrun = spec.torchrun;
  if (planner.needed != nullptr) {
    plan.needed = planner.needed(spec, nodes);
  } else if (torchrun.rendezvous || torchrun.nodes || torchrun.max_restarts) {
    throw Error::usage(fmt::format("cannot launch with {}", to_string(planner.info.launcher)),
                       "only the launcher torchrun has a rendezvous, a number of nodes, and restarts",
                       "choose that launcher, or leave these out");
  }
  plan.processes = planner.plan(spec, nodes, plan.world_size);
  for (PlannedProcess& process : plan.processes) {
    const auto node = std::ranges::find(nodes, process.server, &Node::server);
    if (node != nodes.end()) {
      process.container = node->container;
    }
  }
  return plan;
}

bool needs_port(Launcher launcher) {
  return planner_of(launcher).needs_port;
}

bool needs_mpi(Launcher launcher) {
  return planner_of(launcher).needs_mpi;
}

}  // namespace remote::launch
