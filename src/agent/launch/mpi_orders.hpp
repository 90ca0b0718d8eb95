#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/host/path.hpp"
#include "wire/link.hpp"

// mpirun starts its daemons on other servers through the launch's links instead of ssh: its agent
// (agent/mpi/send_order.hpp) writes each command to a file in the first job's folder and waits for the
// answer.

namespace remote::agent {

constexpr std::size_t most_mpi_order_bytes = 32768;

// Whether this is the name of an Open MPI or MPICH daemon.
bool is_mpi_daemon(std::string_view name);
// Finds the daemon's name and its arguments in a command line of mpirun, without the path and assignments
// before it; nullopt if there is no daemon.
std::optional<std::vector<std::string>> find_daemon_words(std::string_view line);

// Opens the FIFO `orders` of a job for reading and writing, so that it never reports EOF, and without
// blocking. Creates it if it is missing. Throws std::runtime_error.
Descriptor open_mpi_orders(const Path& job_folder);

// The coordinator's side.
class MpiOrders {
 public:
  // `servers` maps mpirun's names to servers. Throws std::runtime_error if the FIFO `orders` cannot be
  // opened.
  MpiOrders(Path job_folder, std::map<std::string, std::string> servers);

  // Readable if there may be new orders.
  int fifo() const { return fifo_.get(); }
  // Reads new files order.NUMBER and until.NUMBER.
  void look();
  bool has_waiting() const { return !waiting_.empty(); }
  bool awaits_ends() const { return !until_.empty(); }
  // Sends as many orders as possible. `send` returns false if the server has no link or accepts no orders
  // now. `gone` lists the servers that will never accept one, with the reason.
  void send(const std::function<bool(const std::string& server, const wire::MpiOrder& order)>& send,
            const std::map<std::string, std::string>& gone);
  // The order that was sent to this server. A server that reconnects may not have received it.
  const wire::MpiOrder* find_sent(const std::string& server) const;
  // Answers the agents that wait for the end of the jobs on these servers.
  void tell_ends(const std::set<std::string>& ended);
  // Call this if the mpirun that gave the orders has exited and another one starts.
  void forget();

 private:
  struct Order {
    std::string number;
    std::string server;
    wire::MpiOrder order;
  };

  void read_order(std::string_view kind, const std::string& number);
  void answer(std::string_view kind, const std::string& number, const std::string& text) const;

  Path folder_;
  std::map<std::string, std::string> servers_;
  Descriptor fifo_;
  std::vector<Order> waiting_;
  std::map<std::string, std::string> until_;  // number -> server
  std::map<std::string, wire::MpiOrder> sent_;
};

// On a member, writes the order to the place where its job waits for it (agent/mpi/member.hpp). Only the
// first order counts, and only a daemon of mpirun is accepted.
void keep_mpi_order(const Path& job_folder, const wire::MpiOrder& order);

// Removes the files of an attempt's mpirun from its job's folder. Returns false on failure.
bool forget_mpi_attempt(const Path& job_folder);

// Splits a line into words like Python's shlex.split(): quotes and backslashes as in a POSIX shell, without
// expansion. nullopt if a quote is not closed, or if the line ends with a backslash.
std::optional<std::vector<std::string>> split_shell_words(std::string_view line);

}  // namespace remote::agent
