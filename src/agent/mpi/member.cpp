#include "agent/mpi/member.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/workers.hpp"
#include "agent/launch/mpi_orders.hpp"
#include "agent/mpi/child.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

std::vector<std::string> await_mpi_order() {
  const Descriptor orders = open_mpi_orders(".");
  while (!has_entry("order")) {
    pollfd ready{orders.get(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    std::array<char, 256> buffer{};
    [[maybe_unused]] const ssize_t count = ::read(orders.get(), buffer.data(), buffer.size());
  }
  std::vector<std::string> words = split(read_job_file("order", most_mpi_order_bytes).value_or(""), '\n');
  if (words.empty()) {
    exit_with_error("mpirun has ended without having started its daemon here");
  }
  words.pop_back();  // the text after the last newline
  if (words.empty() || !is_mpi_daemon(words.front())) {
    exit_with_error("the order of mpirun is for none of its daemons");
  }
  return words;
}

// The last line of a rank's record, with its newline, if mpirun stopped it after another rank's failure.
std::string read_stopped_line(int rank) {
  std::string text =
      read_end_of_file("failures/rank." + std::to_string(rank), longest_output_line, Links::refuse)
          .value_or("");
  if (text.size() > 1) {
    text.erase(0, text.rfind('\n', text.size() - 2) + 1);
  }
  const bool is_stopped =
      text.starts_with("remote: ended by TERM, as ") || text.starts_with("remote: exited with 14, as ");
  return is_stopped ? text : "";
}

}  // namespace

int run_mpi_member() {
  std::vector<std::string> order = await_mpi_order();
  // The order contains mpirun's own value, but interface names differ between servers.
  const char* interface = ::getenv("OMPI_MCA_btl_tcp_if_include");
  ::setenv("REMOTE_MPI_INTERFACE", interface == nullptr ? "" : interface, 1);
  // The daemon has to stop its ranks before this job ends.
  const GroupSignals signals;
  wire::ProcessEnd end = wait_for_child(start_child(
      {.argv = pointers_to(order).data(), .folder = ::getenv("REMOTE_RANK_FOLDER"), .signals = &signals}));
  // The daemon's own exit status does not depend on its ranks.
  std::string stopped;
  for (const WorkerEnd& rank : read_worker_ends(".")) {
    const std::string line = read_stopped_line(rank.rank);
    if (stopped.empty() || line.empty()) {
      end = rank.end.how;
      stopped = line;
    }
    if (line.empty()) {
      break;
    }
  }
  write_whole(STDERR_FILENO, stopped);
  return to_exit_code(end);
}

}  // namespace remote::agent
