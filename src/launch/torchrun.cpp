// The launcher "torchrun": one agent of torch.distributed.run per server. Its rendezvous is static, or c10d
// on the first server; neither needs names that resolve between the servers
// (src/server/python/torch_rendezvous.py).
#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "launch/launchers.hpp"

namespace remote::launch {
namespace {

// The user's command, split for torch.distributed.run into the program that runs the agent, and the one that
// the agent runs.
struct Parts {
  std::string python = "python";
  std::string target;  // options of the agent that select the program, then the program, as the user wrote it
};

Parts take_apart(const std::string& given) {
  if (!is_plain_command(given)) {
    throw Error::usage("cannot launch with torchrun",
                       "its command must be one program with its arguments, without assignments, pipes or "
                       "redirections",
                       "put it into a script and launch that, or use the launcher ranks");
  }
  Parts parts;
  std::string rest(trim(given));
  if (is_python(shell_words(rest).front())) {
    const std::size_t length = first_word_length(rest);
    const std::string whole = rest;
    parts.python = rest.substr(0, length);
    rest = std::string(trim(std::string_view(rest).substr(length)));
    // torch.distributed.run already starts its workers with -u.
    while (rest.starts_with("-u ")) {
      rest = std::string(trim(std::string_view(rest).substr(2)));
    }
    if (rest.starts_with("-m ")) {
      parts.target = "--module " + std::string(trim(std::string_view(rest).substr(2)));
    } else if (!rest.empty() && !rest.starts_with("-")) {
      parts.target = rest;
    } else {
      parts.target = "--no_python " + whole;  // this way, the workers get other options of the interpreter
    }
    return parts;
  }
  parts.target = shell_words(rest).front().ends_with(".py") ? rest : "--no_python " + rest;
  return parts;
}

// How the agents find each other.
struct Rendezvous {
  bool c10d = false;
  NodeRange nodes;
  int max_restarts = 0;
  bool elastic() const { return nodes.least < nodes.most; }
};

Rendezvous rendezvous_of(const TorchrunOptions& options, std::size_t servers) {
  Rendezvous rendezvous;
  const int all = static_cast<int>(servers);
  rendezvous.nodes = options.nodes.value_or(NodeRange{all, all});
  const auto [least, most] = rendezvous.nodes;
  if (most != all) {
    throw Error::usage(
        fmt::format("cannot launch on {} nodes", most),
        fmt::format("{} chosen", all == 1 ? "1 server is" : fmt::format("{} servers are", all)),
        "choose as many servers as the launch may have at most");
  }
  if (least < 1 || least > most) {
    throw Error::usage(fmt::format("cannot launch on {} nodes at least", least),
                       fmt::format("it must be a number from 1 to {}", most));
  }
  // If a node is lost, the workers of the others fail; without restarts, the launch would end.
  constexpr int elastic_restarts = 3;
  rendezvous.max_restarts = options.max_restarts.value_or(rendezvous.elastic() ? elastic_restarts : 0);
  if (rendezvous.max_restarts < 0) {
    throw Error::usage(fmt::format("wrong max_restarts {}", rendezvous.max_restarts),
                       "it must be at least 0");
  }
  rendezvous.c10d = options.rendezvous ? *options.rendezvous == RendezvousMethod::c10d
                                       : rendezvous.elastic() || rendezvous.max_restarts > 0;
  if (!rendezvous.c10d && rendezvous.elastic()) {
    throw Error::usage("cannot launch with a static rendezvous", "it cannot continue with fewer servers",
                       "use the rendezvous c10d, or one number of nodes");
  }
  return rendezvous;
}

void refuse_unfit(const LaunchSpec& spec, const Rendezvous& rendezvous) {
  if (rendezvous.c10d && spec.rendezvous_key.empty()) {
    throw Error::usage(
        "cannot launch with a c10d rendezvous",
        "without the startup file its messages could not be signed, and any user of the servers "
        "could run code in the launch",
        "enable the stacks of the ranks, or use a static rendezvous");
  }
  if (spec.init_method == InitMethod::tcp && rendezvous.c10d) {
    throw Error::usage(
        "cannot launch with INIT_METHOD=tcp://…", "its port is that of the c10d rendezvous",
        "let the ranks find each other by MASTER_ADDR and MASTER_PORT, or use a static rendezvous");
  }
  if (spec.init_method == InitMethod::file && (rendezvous.max_restarts > 0 || rendezvous.elastic())) {
    throw Error::usage("cannot launch with a shared file",
                       "restarted workers would use the file of the previous attempt",
                       "let the ranks find each other by MASTER_ADDR and MASTER_PORT, or turn off restarts");
  }
}

// All agents start again with different numbers, which are in variables
// (agent/launch/attempts_on_server.hpp).
void refuse_unfit_again(const LaunchSpec& spec, const Rendezvous& rendezvous) {
  if (spec.restarts && rendezvous.elastic()) {
    throw Error::usage("cannot launch with restarts",
                       "an elastic launch already continues without a lost server",
                       "give a fixed number of nodes, and say how few servers are enough to start again");
  }
}

std::optional<int> needed(const LaunchSpec& spec, const std::vector<Node>& nodes) {
  const Rendezvous rendezvous = rendezvous_of(spec.torchrun, nodes.size());
  return rendezvous.elastic() ? std::optional(rendezvous.nodes.least) : std::nullopt;
}

// The options that tell an agent how to find the others.
std::string meeting(const LaunchSpec& spec, const Rendezvous& rendezvous, std::size_t node) {
  const std::string port = spec.restarts ? "\"$MASTER_PORT\"" : std::to_string(spec.master_port);
  if (!rendezvous.c10d) {
    return fmt::format("--node_rank={} --master_addr={} --master_port={}",
                       spec.restarts ? "\"$NODE_RANK\"" : std::to_string(node), shell_quote(spec.master_addr),
                       port);
  }
  // The first agent hosts the store, because torch's own choice, based on host names, is often wrong. The
  // timeout, in seconds, is how long to wait for nodes beyond MIN. The backend is c10d with signed messages,
  // from torch_rendezvous.py; if that is missing, torch refuses to start.
  return fmt::format("--rdzv_backend=remote_c10d --rdzv_endpoint={} --rdzv_conf=is_host={}{}",
                     shell_quote(spec.master_addr + ":") + port, node == 0 ? 1 : 0,
                     rendezvous.elastic() ? ",last_call_timeout=5" : "");
}

// The command line of one agent. `nodes`: "2" or "1:4"; `meeting`: its options for finding the others.
std::string agent_line(const LaunchSpec& spec, const std::string& nodes, int nproc,
                       const std::string& meeting) {
  if (spec.local_rank_arg) {
    throw Error::usage("cannot launch with torchrun", "torchrun passes the local rank only as LOCAL_RANK",
                       "use the launcher ranks, which can pass both")
        .mended_by(Remedy::pass_local_rank);
  }
  const Parts parts = take_apart(spec.torch ? with_python(spec.command) : spec.command);
  // -r and -t name a nonexistent local rank, because without them torch 1.13 under Python 3.11 fails at
  // startup. The interval is how long the end of a worker may go unnoticed; the default is 5 s.
  return fmt::format(
      "{} -m torch.distributed.run --nnodes={} --nproc_per_node={} {} "
      "--monitor_interval=0.1 -r {}:1 -t {}:1 {}",
      parts.python, nodes, nproc, meeting, nproc, nproc, parts.target);
}

std::vector<PlannedProcess> plan_agents(const LaunchSpec& spec, const std::vector<Node>& nodes,
                                        int /*world_size*/) {
  const Rendezvous rendezvous = rendezvous_of(spec.torchrun, nodes.size());
  refuse_unfit(spec, rendezvous);
  refuse_unfit_again(spec, rendezvous);
  const std::string nnodes = spec.restarts ? "\"$GROUP_WORLD_SIZE\"" : to_string(rendezvous.nodes);
  const std::string restarts =
      rendezvous.max_restarts > 0 ? fmt::format(" --max_restarts={}", rendezvous.max_restarts) : "";
  std::vector<PlannedProcess> processes;
  int rank = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int nproc = nodes[n].nproc;
    PlannedProcess process;
    process.server = nodes[n].server;
    process.node_rank = static_cast<int>(n);
    process.rank = rank;
    process.ranks = nproc;
    process.is_torch_agent = true;
    process.command = agent_line(spec, nnodes, nproc, meeting(spec, rendezvous, n) + restarts);
    EnvBuilder env;
    env.set("NODE_RANK", process.node_rank);
    env.set("RUN_UUID", spec.run_id);
    env.set("PET_RDZV_ID",
            spec.run_id);  // instead of torchrun's --rdzv_id, which everybody could read in `ps`
    if (spec.restarts) {
      env.set("GROUP_WORLD_SIZE", static_cast<int>(nodes.size()));
      env.set("MASTER_ADDR", spec.master_addr);
      env.set("MASTER_PORT", spec.master_port);
    }
    add_common(env, spec, nodes[n]);
    if (rendezvous.c10d) {
      env.set("REMOTE_RENDEZVOUS_KEY", spec.rendezvous_key);
    }
    env.give_to(process);
    process.tags = tags_of(spec, n == 0);
    processes.push_back(std::move(process));
    rank += nproc;
  }
  return processes;
}

}  // namespace

std::string torchrun_command(const LaunchSpec& spec, int nodes, int nproc) {
  return agent_line(
      spec, std::to_string(nodes), nproc,
      "--node_rank=\"$NODE_RANK\" --master_addr=\"$MASTER_ADDR\" --master_port=\"$MASTER_PORT\"");
}

extern const Planner torchrun{
    {Launcher::torchrun, "an agent of torch.distributed.run a server"}, true, plan_agents, needed};

}  // namespace remote::launch
