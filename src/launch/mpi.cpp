// The launcher "mpi": mpirun on the first server starts the ranks of all servers. On each other server, a job
// waits for mpirun's order, which the launch's lifeline delivers instead of ssh (docs/launchers/mpi.md).
#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "launch/launchers.hpp"

namespace remote::launch {
namespace {

// mpirun's names for the servers. These labels have a meaning only for its agent and cannot be resolved, so
// mpirun never mistakes another server for its own, even if all have the same address.
std::vector<LaunchHost> labels_of(const std::vector<Node>& nodes) {
  std::vector<LaunchHost> hosts{{"localhost", nodes.front().nproc, nodes.front().server}};
  std::set<std::string> used;
  for (std::size_t n = 1; n < nodes.size(); ++n) {
    std::string label = "remote-";
    for (const unsigned char c : nodes[n].server) {
      label += std::isalnum(c) != 0 && c < 0x80 ? static_cast<char>(c) : '-';
    }
    if (!used.insert(label).second) {
      label += fmt::format("-{}", n);
      used.insert(label);
    }
    hosts.push_back({label, nodes[n].nproc, nodes[n].server});
  }
  return hosts;
}

// The images of containers were not inspected. If something is missing in them, the job itself reports it.
bool in_containers(const std::vector<Node>& nodes) {
  const auto image = [](const Node& node) { return node.container ? node.container->image : std::string(); };
  for (const Node& node : nodes) {
    if (image(node) != image(nodes.front())) {
      throw Error::usage("cannot launch with mpi",
                         fmt::format("{} and {} have different containers, or one has none, but mpirun must "
                                     "be the same on all servers",
                                     nodes.front().server, node.server),
                         "give all of them the same image, or none");
    }
  }
  return nodes.front().container.has_value();
}

void check_runtimes(const std::vector<Node>& nodes) {
  const auto name = [](const MpiRuntime& mpi) {
    return fmt::format("{} {}", mpi.kind == MpiRuntime::Kind::open_mpi ? "Open MPI" : "MPICH's Hydra",
                       mpi.version);
  };
  for (const Node& node : nodes) {
    if (!node.mpi) {
      throw Error("cannot launch with mpi", "there is no supported mpirun (Open MPI, or MPICH's Hydra)",
                  "install it there (Debian: openmpi-bin), or let `prologue` or the Python environment in "
                  "configs.yaml put it on the PATH")
          .on(node.server);
    }
    if (!node.mpi->has_daemon) {
      throw Error("cannot launch with mpi",
                  fmt::format("there is mpirun of {}, but not its daemon (orted, prted or hydra_pmi_proxy)",
                              name(*node.mpi)),
                  "its PATH must have all of the installation")
          .on(node.server);
    }
    const MpiRuntime& first = *nodes.front().mpi;
    if (node.mpi->kind != first.kind || node.mpi->version != first.version) {
      throw Error("cannot launch with mpi",
                  fmt::format("it has {}, and {} has {}", name(*node.mpi), nodes.front().server, name(first)),
                  "one launch needs the same version on all of its servers")
          .on(node.server);
    }
  }
}

std::string host_list(const std::vector<LaunchHost>& hosts) {
  std::vector<std::string> words;
  for (const LaunchHost& host : hosts) {
    words.push_back(fmt::format("{}:{}", host.name, host.slots.value_or(1)));
  }
  return join(words, ",");
}

// By default, mpirun binds each rank to one core, which all threads of a data loader would share.
std::string mpirun_line(const MpiRuntime& mpi, const std::string& master_addr, const std::string& agent,
                        const std::string& hosts, const std::string& world_size, const std::string& command) {
  std::string line = "mpirun";
  if (mpi.kind == MpiRuntime::Kind::hydra) {
    line += fmt::format(" -genvnone -n {} -localhost {} -hosts {} -launcher ssh -launcher-exec {}",
                        world_size, shell_quote(master_addr), hosts, agent);
  } else {
    line += mpi.root ? " --allow-run-as-root" : "";
    line += fmt::format(" --map-by slot --bind-to none --leave-session-attached --np {} --host {}",
                        world_size, hosts);
    // Each server uses its own variables, and daemons do not start further daemons.
    line += mpi.version.starts_with("4.") || mpi.version.starts_with("3.")
                ? fmt::format(
                      " --mca plm_rsh_agent {} --mca plm_rsh_no_tree_spawn 1 --mca "
                      "plm_rsh_pass_environ_mca_params 0 --mca orte_keep_fqdn_hostnames 1 --mca regx naive",
                      agent)
                : fmt::format(
                      " --prtemca plm_ssh_agent {} --prtemca plm_ssh_no_tree_spawn 1 --prtemca "
                      "plm_ssh_pass_environ_mca_params 0 --prtemca prte_keep_fqdn_hostnames 1",
                      agent);
  }
  return line + " remote-mpi-rank " + shell_quote(command);
}

// The command in a container, which first asks its own mpirun for its kind.
std::string line_in_container(const std::function<std::string(const MpiRuntime&)>& line) {
  using Kind = MpiRuntime::Kind;
  const auto of = [&](Kind kind, const char* version) {
    return line({.kind = kind, .version = version, .root = true});
  };
  return fmt::format(
      "case $(mpirun --version 2>&1) in *'(Open MPI) '[34].*) {} ;; *'(Open MPI) '*) {} ;; *HYDRA* | "
      "*'Intel(R) MPI'*) {} ;; "
      "*) echo 'remote: the image has no mpirun that is known (Open MPI, or MPICH'\\''s Hydra)' >&2; exit "
      "127 ;; esac",
      of(Kind::open_mpi, "4."), of(Kind::open_mpi, "5."), of(Kind::hydra, ""));
}

// Sets the interfaces, under the names of all generations of Open MPI.
void add_interfaces(EnvBuilder& env, const Env& user, const Node& node) {
  if (!node.interface) {
    return;
  }
  env.set_default(user, "OMPI_MCA_btl_tcp_if_include", *node.interface);
  env.set_default(user, "OMPI_MCA_oob_tcp_if_include", *node.interface);
  if (*node.interface != "lo") {  // the daemons of Open MPI 5 never use lo
    env.set_default(user, "PRTE_MCA_prte_if_include", *node.interface);
  }
}

std::vector<PlannedProcess> plan_mpirun(const LaunchSpec& spec, const std::vector<Node>& nodes,
                                        int world_size) {
  const bool contained = in_containers(nodes);
  if (!contained) {
    check_runtimes(nodes);
  }
  std::string command = spec.torch ? with_python(spec.command) : spec.command;
  if (spec.local_rank_arg) {
    command += " --local_rank=$LOCAL_RANK";
  }
  const std::vector<LaunchHost> hosts = labels_of(nodes);
  const std::string agent = spec.mpi_over_ssh ? "remote-mpi-ssh" : "remote-mpi-agent";
  const auto first_line = [&](const std::string& what) {
    const auto line = [&](const MpiRuntime& mpi) {
      // With restarts, these differ between attempts (agent/launch/attempts_on_server.hpp).
      return mpirun_line(mpi, spec.master_addr, agent,
                         spec.restarts ? "\"$REMOTE_MPI_HOSTS\"" : host_list(hosts),
                         spec.restarts ? "\"$WORLD_SIZE\"" : std::to_string(world_size), what);
    };
    return contained ? line_in_container(line) : line(*nodes.front().mpi);
  };
  std::vector<PlannedProcess> processes;
  int rank = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    PlannedProcess process;
    process.server = node.server;
    process.node_rank = static_cast<int>(n);
    process.rank = rank;
    process.ranks = node.nproc;
    process.command = n > 0 ? std::string("remote-mpi-member") : first_line(command);
    process.shown = n > 0 ? process.command : first_line(mask_command(command));
    process.helpers = {agent, "remote-mpi-member", "remote-mpi-rank"};
    process.mpi_host = hosts[n].name;
    EnvBuilder env;
    env.set("MASTER_ADDR", spec.master_addr);
    env.set("MASTER_PORT", spec.master_port);
    env.set("NODE_RANK", process.node_rank);
    env.set("GROUP_RANK", process.node_rank);
    env.set("RUN_UUID", spec.run_id);
    if (spec.restarts) {
      env.set("WORLD_SIZE", world_size);
      env.set("GROUP_WORLD_SIZE", static_cast<int>(nodes.size()));
      env.set("REMOTE_MPI_HOSTS", host_list(hosts));
    }
    Env user = node.env;
    user.insert(user.end(), spec.env.begin(), spec.env.end());
    add_interfaces(env, user, node);
    add_common(env, spec, node);
    env.give_to(process);
    process.tags = tags_of(spec, n == 0);
    processes.push_back(std::move(process));
    rank += node.nproc;
  }
  return processes;
}

}  // namespace

extern const Planner mpi{
    .info = {Launcher::mpi, "mpirun on the first server, without ssh between the servers"},
    .needs_port = true,
    .plan = plan_mpirun,
    .needs_mpi = true};

}  // namespace remote::launch
