#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "servers/action.hpp"
#include "servers/logout.hpp"

// The facts of a server that a launch is planned with, as src/server/probe.sh tells them. The lines are
// described in docs/protocol.md.

namespace remote::servers {

struct ProbeRequest {
  std::string master_addr;           // as the servers reach the master: an IP address or a name
  std::optional<int> master_port{};  // on the master only: the port the user named, 0 for any free one
  std::string ip_program = "ip";     // for tests
  std::string activate{};  // sh text that enters the Python environment, for where PATH has no python3
  std::string program{};   // say whether a job would find it; "": do not look
  bool mpi = false;        // ask for mpirun, too
  // Where not empty: look for what would harm a launch. The project's folder and that of its environment, as
  // Script::set_path() takes them.
  std::string project{};
  std::string environment{};
  std::string root{};  // put before the paths of the system's files, for tests
};

// A process that holds memory of a GPU.
struct GpuHolder {
  int pid = 0;
  std::string user{};
  std::optional<int> gpu{};  // its index; nullopt: not known
};

// Who listens on a port that is taken. pid and program only where the probing user may see them.
struct PortHolder {
  std::string user;
  std::optional<int> pid{};
  std::string program{};
};

struct ProbeAnswer {
  std::string host;
  int cpus = 1;
  int gpus = 0;
  std::optional<std::string> python{};      // "3.11.2"
  bool resolved = true;                     // false: master_addr is a name that this server does not know
  std::string master_address{};             // the IP address of the master, where resolved
  std::optional<std::string> interface {};  // that leads to the master; nullopt: could not be found out
  std::string source{};                     // this server's own address on that way, where known
  std::optional<bool> port_free{};          // of the port that was named
  std::optional<PortHolder> holder{};       // when that port is taken
  std::optional<int> suggested_port{};      // on the master: a port that is free
  std::optional<int> second_port{};         // and another one, for the lifeline

  // mpirun, where it was asked for and is one of those known.
  struct Mpi {
    bool hydra = false;  // MPICH's or Intel MPI's, else Open MPI
    std::string version;
    bool has_daemon = false;  // that it starts on other servers
    bool root = false;        // the login is root
  };
  std::optional<Mpi> mpi{};

  // Where ProbeRequest::project was given. nullopt and empty: not found out, or nothing of the kind.
  struct Room {
    std::uint64_t free_bytes = 0;  // for the login
    std::uint64_t inodes = 0;      // 0: no fixed number
    std::uint64_t free_inodes = 0;
  };
  std::optional<Room> room{};               // where the project lies
  std::optional<std::uint64_t> shm_free{};  // bytes of /dev/shm
  std::optional<std::int64_t> clock{};      // seconds since the epoch
  LogoutRules logout{};                     // whether logind ends what the login has started
  std::string torch{};                      // the version in the environment; "": none was seen
  std::string cuda{};                       // that this torch was built for
  std::string hip{};                        // likewise
  std::string env_python{};                 // the version of the environment's Python; "": there is none
  std::string os{};                         // /etc/os-release: "Debian GNU/Linux 12 (bookworm)"
  std::string kernel{};                     // "6.1.0-18-amd64"
  std::string driver{};                     // NVIDIA's
  std::vector<std::string> models{};        // of its GPUs, one each, the first 64
  std::string missing{};                    // ProbeRequest::program, where a job would not find it
  std::vector<GpuHolder> gpu_holders{};     // that are no jobs; the first few

  void take(AnswerLine& line);
  void check() const;

 private:
  bool take_version(std::string_view key, AnswerLine& line);

  std::set<std::string, std::less<>> seen_;  // keys
};

Action<ProbeAnswer> probe_action(const ProbeRequest& request);

// The port to use, from the master's answer. Throws Error (usage) when the port that the user named is taken:
// says by whom, as far as that could be seen, and which one is free.
int choose_port(const ProbeAnswer& master, std::optional<int> wanted);

}  // namespace remote::servers
