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

// mpirun starts its daemons on other servers through the launch's links, in place of ssh: its agent
// (agent/mpi/send_order.hpp) puts each command into a file of the first job's folder and waits for the
// answer.

namespace remote::agent {

constexpr std::size_t most_mpi_order_bytes = 32768;

// Whether this is the name of a daemon of Open MPI or MPICH.
bool is_mpi_daemon(std::string_view name);
// The daemon's name and its arguments in a command line of mpirun, without a path or assignments before it;
// nullopt without a daemon.
std::optional<std::vector<std::string>> find_daemon_words(std::string_view line);

// Opens the FIFO `orders` of a job for both directions, so that it never ends, and without blocking. Creates
// it if it is missing. Throws std::runtime_error.
Descriptor open_mpi_orders(const Path& job_folder);

// The coordinator's side.
class MpiOrders {
 public:
  // `servers`: by what mpirun calls them. Throws std::runtime_error if the FIFO `orders` cannot be opened.
  MpiOrders(Path job_folder, std::map<std::string, std::string> servers);

  // Readable if there may be new orders.
  int fifo() const { return fifo_.get(); }
  // Reads new files order.NUMBER and until.NUMBER.
  void look();
  bool has_waiting() const { return !waiting_.empty(); }
  bool awaits_ends() const { return !until_.empty(); }
  // Sends what can be sent: `send` returns false if the server has no link or takes no orders now. `gone`:
  // servers that will never take one, with the reason.
  void send(const std::function<bool(const std::string& server, const wire::MpiOrder& order)>& send,
            const std::map<std::string, std::string>& gone);
  // The order that was sent to this server, for one that connects again and may not have received it.
  const wire::MpiOrder* find_sent(const std::string& server) const;
  // Answers the agents that wait for the end of the jobs on these servers.
  void tell_ends(const std::set<std::string>& ended);
  // The mpirun that gave the orders is gone, and another one starts.
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

// A member's side: puts the order where its job waits for it (agent/mpi/member.hpp). The first order counts.
// Only a daemon of mpirun is accepted.
void keep_mpi_order(const Path& job_folder, const wire::MpiOrder& order);

// Removes the files of an attempt's mpirun from its job's folder. Returns false if a file cannot be removed.
bool forget_mpi_attempt(const Path& job_folder);

// Splits a line into words like Python's shlex.split(): quotes and backslashes as in a POSIX shell, without
// any expansion. nullopt if a quote is not closed, or the line ends with a backslash.
std::optional<std::vector<std::string>> split_shell_words(std::string_view line);

}  // namespace remote::agent
