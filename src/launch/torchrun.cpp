// The launcher "torchrun": one agent of torch.distributed.run a server, with a static rendezvous, which needs
// no names that resolve between the servers.
#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "launch/command.hpp"
#include "launch/launchers.hpp"

namespace remote::launch {
namespace {

// The user's command, taken apart for torch.distributed.run: what runs the agent, and what the agent runs.
struct Parts {
  std::string python = "python";
  std::string target;  // options of the agent that say what it runs, then that, as the user wrote it
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
    // torch.distributed.run starts its workers with -u anyway.
    while (rest.starts_with("-u ")) {
      rest = std::string(trim(std::string_view(rest).substr(2)));
    }
    if (rest.starts_with("-m ")) {
      parts.target = "--module " + std::string(trim(std::string_view(rest).substr(2)));
    } else if (!rest.empty() && !rest.starts_with("-")) {
      parts.target = rest;
    } else {
      parts.target = "--no_python " + whole;  // other options of the interpreter: the workers get them so
    }
    return parts;
  }
  parts.target = shell_words(rest).front().ends_with(".py") ? rest : "--no_python " + rest;
  return parts;
}

std::vector<PlannedProcess> plan(const LaunchSpec& spec, const std::vector<Node>& nodes, int /*world_size*/) {
  if (spec.local_rank_arg) {
    throw Error::usage("cannot launch with torchrun", "torchrun hands the local rank over as LOCAL_RANK only",
                       "use the launcher ranks, which can hand over both")
        .mended_by(Remedy::pass_local_rank);
  }
  const Parts parts = take_apart(spec.torch ? with_python(spec.command) : spec.command);
  std::vector<PlannedProcess> processes;
  int rank = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int nproc = nodes[n].nproc;
    PlannedProcess process;
    process.server = nodes[n].server;
    process.node_rank = static_cast<int>(n);
    process.rank = rank;
    process.ranks = nproc;
    // -r and -t for a local rank that there is not: without any, torch 1.13 under Python 3.11 fails at its
    // start. The interval is how long a worker's end may go unnoticed; the default is 5 s.
    process.command = fmt::format(
        "{} -m torch.distributed.run --nnodes={} --nproc_per_node={} --node_rank={} --master_addr={} "
        "--master_port={} --monitor_interval=0.1 -r {}:1 -t {}:1 {}",
        parts.python, nodes.size(), nproc, n, shell_quote(spec.master_addr), spec.master_port, nproc, nproc,
        parts.target);
    EnvBuilder env;
    env.set("NODE_RANK", process.node_rank);
    env.set("RUN_UUID", spec.run_id);
    add_common(env, spec, nodes[n]);
    process.env = env.take();
    process.tags = tags_of(spec, n == 0);
    processes.push_back(std::move(process));
    rank += nproc;
  }
  return processes;
}

}  // namespace

std::string torchrun_command(const LaunchSpec& spec, int nodes, int nproc) {
  if (spec.local_rank_arg) {
    throw Error::usage("cannot launch with torchrun", "torchrun hands the local rank over as LOCAL_RANK only",
                       "use the launcher ranks, which can hand over both")
        .mended_by(Remedy::pass_local_rank);
  }
  const Parts parts = take_apart(spec.torch ? with_python(spec.command) : spec.command);
  return fmt::format(
      "{} -m torch.distributed.run --nnodes={} --nproc_per_node={} --node_rank=\"$NODE_RANK\" "
      "--master_addr=\"$MASTER_ADDR\" --master_port=\"$MASTER_PORT\" --monitor_interval=0.1 -r {}:1 -t {}:1 "
      "{}",
      parts.python, nodes, nproc, nproc, nproc, parts.target);
}

extern const Launcher torchrun{{"torchrun", "an agent of torch.distributed.run a server"}, true, plan};

}  // namespace remote::launch
