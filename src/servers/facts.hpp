#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/facts.hpp>
#include <remote/top.hpp>

#include "config/config.hpp"
#include "servers/action.hpp"
#include "servers/gpus.hpp"

// What a server is and has, as src/server/actions/facts.sh tells it to a launch, check, servers and top. The
// lines are described in docs/protocol.md.

namespace remote::servers {

// The name of a function of facts.sh, and its words.
using FactsPart = std::vector<std::string>;

struct FactsRequest {
  std::vector<FactsPart> parts;
  // Of the project and of its environment, as Script::set_path() takes them.
  std::string project{};
  std::string environment{};
  std::string activate{};       // sh text that enters the Python environment
  std::string root{};           // put before the paths of the system's files, for tests
  std::string shm{"/dev/shm"};  // for tests
  std::chrono::seconds timeout{60};
};

// Who listens on a port that is taken. pid and program only where the login may see them.
struct PortHolder {
  std::string user;
  std::optional<int> pid{};
  std::string program{};
};

// mpirun, where it is one of those known.
struct MpiFacts {
  bool hydra = false;  // MPICH's or Intel MPI's, else Open MPI
  std::string version;
  bool has_daemon = false;  // that it starts on other servers
  bool root = false;        // the login is root
};

// The server's processors since its start, in ticks.
struct Ticks {
  std::uint64_t busy = 0;
  std::uint64_t all = 0;
};

// How much of what a lease needs is free on a server, and how much there is.
struct FreeFacts {
  int gpus = 0;
  int all_gpus = 0;  // that may be leased
  int cpus = 0;
  int all_cpus = 0;
  std::uint64_t memory = 0;  // bytes
  std::uint64_t all_memory = 0;
};

class FactsAnswer {
 public:
  FactsAnswer() = default;
  // Each of the parts must be answered.
  explicit FactsAnswer(const std::vector<FactsPart>& parts);

  ServerFacts facts{};
  Instant clock{};  // the server's
  int cpus_online = 1;
  Ticks ticks{};
  std::vector<OtherProject> others{};
  std::vector<Lease> leases{};
  std::optional<FreeFacts> free{};
  std::string no_leases{};  // why there can be none

  // Of the master of a launch, from here.
  bool resolved = true;                     // false: its address is a name that this server does not know
  std::string master_address{};             // its IP address, where resolved
  std::optional<std::string> interface {};  // that leads to it; nullopt: could not be found out
  std::string source{};                     // this server's own address on that way, where known
  // On the master of a launch.
  std::optional<bool> port_free{};      // of the port that was named
  std::optional<PortHolder> holder{};   // when that port is taken
  std::optional<int> suggested_port{};  // a port that is free
  std::optional<int> second_port{};     // and another one, for the lifeline
  std::optional<MpiFacts> mpi{};
  std::string missing{};  // the program that was asked for, where a job would not find it

  // That a job may use, at least 1.
  int cpus() const { return std::max(facts.usable_threads, 1); }
  // NVIDIA's that answer: those that the ranks of a launch are counted by.
  int gpus() const;
  // `cpu` is what was busy since the earlier look, where there is one.
  ServerLoad load(const std::optional<Ticks>& earlier) const;

  static bool takes(std::string_view kind) { return kind == "facts" || GpuAnswer::takes(kind); }
  void take(AnswerLine& line);
  // Throws Error for an answer that lacks something.
  void check();

 private:
  DiskFacts& disk(AnswerLine& line);
  bool take_disk(std::string_view key, AnswerLine& line);
  bool take_python(std::string_view key, AnswerLine& line);
  bool take_launch(std::string_view key, AnswerLine& line);
  bool take_leases(std::string_view key, AnswerLine& line);
  bool take_machine(std::string_view key, AnswerLine& line);
  void take_package(std::string_view folder, bool distribution);

  std::vector<std::string_view> needed_;     // keys
  std::set<std::string, std::less<>> seen_;  // likewise
  std::set<std::string> there_;              // of what a disk may be
  std::set<std::string> writable_;
  GpuAnswer gpus_;
};

// Calls of the parts, in an action that has a FactsAnswer and calls what begins and ends its answer.
void add_facts(Script& script, const FactsRequest& request);
Action<FactsAnswer> facts_action(const FactsRequest& request);

// How long nothing may come from a server until it counts as stopped in `check`: a login shell or a folder
// that hangs must not hold up the other servers.
std::chrono::seconds check_silence(const config::Config& config);

// All that `check` asks.
FactsRequest check_request(const config::Config& config, const config::Server& server);
// How a server is at a moment. `project`: its folder.
FactsRequest load_request(std::string_view project);

// Asks, and compares the clocks where `clock` was asked for. Throws Error and Interrupted.
FactsAnswer facts_of(ssh::Connection& connection, const FactsRequest& request, const Cancel& cancel);

// Whether logind ends what a user of the server has started when the login ends: where KillUserProcesses=yes
// holds for the user (logind.conf(5), pam_systemd(8)). Lingering does not help against it.
bool logout_ends_jobs(const ServerFacts& facts, const std::string& user);

// That a server's clock is ahead, by what it said between two moments of this machine's clock.
std::chrono::milliseconds clock_difference(Instant server, ExactInstant asked, ExactInstant answered);

// The words of a lease for lib/lease.sh. `among`: the GPUs that may be taken, by index; none: all.
std::vector<std::string> lease_words(const LeaseRequest& lease, const std::vector<int>& among);

// The port to use, from the master's answer. Throws Error (usage) when the port that the user named is taken:
// says by whom, as far as that could be seen, and which one is free.
int choose_port(const FactsAnswer& master, std::optional<int> wanted);

}  // namespace remote::servers
