#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "wire/fields.hpp"

// The configuration of a launch's supervisor on one server. The client sends it with the jobs to start, and
// the agent keeps it as `lifeline.json` in their folders while the launch is running.

namespace remote::wire {

constexpr std::size_t max_launch_servers = 10'000;
constexpr std::size_t max_launch_jobs = 10'000;
constexpr std::size_t max_activation = std::size_t{1} << 20U;

// The secrets of a server's links, one per link. The coordinator has those of all members, in their order. A
// member has only its own, so it cannot impersonate another member.
using LinkTokens = std::vector<std::string>;

struct LaunchServer {
  std::string name;
  int ranks = 0;         // in the first attempt; for a spare: once it replaces another server
  std::string mpi_host;  // mpirun's name for it; "" without mpirun

  static constexpr auto fields() {
    using S = LaunchServer;
    return field_list(field("name", &S::name, at_most(256)),
                      field("ranks", &S::ranks, in_range(0, 1'000'000)),
                      field("mpi_host", &S::mpi_host, at_most(256)));
  }
  friend bool operator==(const LaunchServer&, const LaunchServer&) = default;
};

// A failure that allows a restart of the launch.
enum class RestartOn { exit, signal, out_of_memory, lost, hang };

// A launch with restarts (docs/resilience.md).
struct RestartSpec {
  int most = 0;                    // maximum number of restarts
  int least = 1;                   // minimum number of servers in an attempt
  std::vector<RestartOn> causes;   // empty: any
  std::vector<int> final_codes;    // exit codes that prevent a restart
  int spares = 0;                  // the last servers, without ranks until they replace another one
  bool numbers_own_ranks = false;  // the jobs are agents, such as torchrun's
  // Glob patterns of checkpoints and of the files that mark them as complete, and folders of the project to
  // search in addition to its own; "" without checkpoints.
  std::string checkpoint_files;
  std::string checkpoint_complete;
  std::vector<std::string> checkpoint_folders;

  static constexpr auto fields() {
    using S = RestartSpec;
    return field_list(
        field("most", &S::most, in_range(0, 1'000'000)), field("least", &S::least, in_range(0, 1'000'000)),
        field("causes", &S::causes, at_most(16)), field("final_codes", &S::final_codes, at_most(256)),
        field("spares", &S::spares, in_range(0, 1'000'000)),
        field("numbers_own_ranks", &S::numbers_own_ranks),
        field("checkpoint_files", &S::checkpoint_files, at_most(4096)),
        field("checkpoint_complete", &S::checkpoint_complete, at_most(4096)),
        field("checkpoint_folders", &S::checkpoint_folders, at_most(4096)));
  }
  friend bool operator==(const RestartSpec&, const RestartSpec&) = default;
};

enum class HangResponse { leave, end, restart };

struct HangSpec {
  int seconds = 0;  // how long without output or work
  HangResponse response = HangResponse::leave;

  static constexpr auto fields() {
    return field_list(field("seconds", &HangSpec::seconds, in_range(1, 1 << 30)),
                      field("response", &HangSpec::response));
  }
  friend bool operator==(const HangSpec&, const HangSpec&) = default;
};

struct SupervisedJob {
  std::string id;
  int rank = 0;  // for an agent or mpirun: its first rank

  static constexpr auto fields() {
    return field_list(field("id", &SupervisedJob::id, an_id()),
                      field("rank", &SupervisedJob::rank, in_range(0, 1'000'000)));
  }
  friend bool operator==(const SupervisedJob&, const SupervisedJob&) = default;
};

struct LaunchSpec {
  std::string server;                 // the name of this server
  std::vector<LaunchServer> servers;  // those with a supervisor; the first one is the coordinator
  LinkTokens tokens;
  std::vector<SupervisedJob> jobs;  // those on this server
  // The digest of the ServerProgram, set by the agent. All supervisors of the launch run its agent, even when
  // they are restarted, so the servers of one link have the same messages.
  std::string program;
  std::string address;  // the coordinator's
  int port = 0;         // 0 if there is only one server
  int grace_seconds =
      0;  // between a failure and stopping the other ranks, so that they can print their own errors
  int timeout_seconds = 60;  // a server that is silent for longer is lost
  int needed = 0;            // number of servers that an elastic launch needs to continue; 0: all
  bool ends_alone = false;   // the failure of a rank or a server does not stop other ranks
  bool is_whole = false;     // all servers of the launch have a supervisor
  bool notifies = false;     // the coordinator sends the notification
  std::string activate;      // shell text that enters an environment with a Python, for the notification
  std::optional<int> lease_seconds;  // if jobs wait for leases on several servers: the time within which
                                     // these must be complete
  std::optional<RestartSpec> restarts;
  std::optional<HangSpec> hang;

  static constexpr auto fields() {
    using S = LaunchSpec;
    return field_list(
        field("server", &S::server, at_most(256)), field("servers", &S::servers, at_most(max_launch_servers)),
        field("tokens", &S::tokens, a_word("", max_launch_servers)),
        field("jobs", &S::jobs, at_most(max_launch_jobs)), field("program", &S::program, a_word("", 64)),
        field("address", &S::address, at_most(1024)), field("port", &S::port, in_range(0, 65535)),
        field("grace_seconds", &S::grace_seconds, in_range(0, 1 << 30)),
        field("timeout_seconds", &S::timeout_seconds, in_range(1, 1 << 30)),
        field("needed", &S::needed, in_range(0, 1'000'000)), field("ends_alone", &S::ends_alone),
        field("is_whole", &S::is_whole), field("notifies", &S::notifies),
        field("activate", &S::activate, at_most(max_activation)),
        field("lease_seconds", &S::lease_seconds, in_range(1, 1 << 30)), field("restarts", &S::restarts),
        field("hang", &S::hang));
  }
  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;

  bool uses_mpi() const { return !servers.empty() && !servers.front().mpi_host.empty(); }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::RestartOn> = {
    std::string_view("exit"), std::string_view("signal"), std::string_view("oom"), std::string_view("lost"),
    std::string_view("hang")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::HangResponse> = {
    std::string_view("leave"), std::string_view("end"), std::string_view("restart")};
