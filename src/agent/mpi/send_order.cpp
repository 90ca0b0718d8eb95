#include "agent/mpi/send_order.hpp"

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/record.hpp"
#include "agent/launch/mpi_orders.hpp"
#include "agent/mpi/child.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view daemon_of_mpich = "hydra_pmi_proxy";
constexpr std::size_t most_host_lines = std::size_t{4} << 20U;

// Writes a file for the lifeline, and waits for its answer. `answer`: the FIFO for the answer, which never
// reports EOF.
std::string ask_lifeline(int answer, const std::string& file, const std::string& text) {
  if (answer < 0 || !put_file(file, text)) {
    exit_with_error("cannot write in the job's folder: is the disk full?");
  }
  const Descriptor orders = open_mpi_orders(".");
  write_whole(orders.get(), "\n");
  std::string line;
  char byte = 0;
  while (::read(answer, &byte, 1) == 1 && byte != '\n') {
    line += byte;
  }
  return line;
}

// The line of `mpi_hosts` for this host, without its name.
std::string find_mpi_host(const std::string& host) {
  const std::string text = "\n" + read_job_file("mpi_hosts", most_host_lines).value_or("");
  const std::string begin = "\n" + host + " ";
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) {
    exit_with_error("mpirun asks for " + host + ", which is not a server of this launch");
  }
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find('\n', from) - from);
}

std::string take_word(std::string& line) {
  std::string word = line.substr(0, line.find(' '));
  line.erase(0, word.size() + 1);
  return word;
}

}  // namespace

int send_order_by_lifeline(const std::vector<std::string>& words) {
  const std::string number = std::to_string(::getpid());
  const std::string answer_file = "answer." + number;
  ::unlink(answer_file.c_str());
  ::mkfifo(answer_file.c_str(), 0600);
  // Opened for reading and writing, so that neither side blocks.
  const int answer = ::open(answer_file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  const std::string order = join(words, "\n") + "\n";
  const std::string reply = ask_lifeline(answer, "order." + number, order);
  if (reply == "ok" && order.find(daemon_of_mpich) != std::string::npos) {
    ask_lifeline(answer, "until." + number, words.front() + "\n");
  }
  ::unlink(answer_file.c_str());
  if (reply != "ok") {
    exit_with_error(text::format("mpirun cannot start its daemon for {}: {}", words.front(), reply));
  }
  return 0;
}

int send_order_by_ssh(const std::vector<std::string>& words) {
  std::string script = find_mpi_host(words.front());
  const std::string user = take_word(script);
  const std::string address = take_word(script);
  const std::string port = take_word(script);
  const auto order = find_daemon_words(join(words, " "));
  if (!order) {
    exit_with_error("the order is for none of mpirun's daemons");
  }
  for (const std::string& word : *order) {
    script += " '" + replace_all(word, "'", "'\\''") + "'";
  }
  script += "; exit $?\n";  // sh must not wait for the end of stdin
  std::array<int, 2> ends{-1, -1};
  [[maybe_unused]] const int made = ::pipe2(ends.data(), O_CLOEXEC);
  const std::array<const char*, 11> argv{"ssh",           "-o",         "BatchMode=yes", "-p",
                                         port.c_str(),    "-l",         user.c_str(),    "--",
                                         address.c_str(), "exec sh -s", nullptr};
  const pid_t child = start_child({.argv = argv.data(), .streams = {ends[0], -1, -1}});
  ::close(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);  // ssh may exit immediately
  // The pipe stays open, so the other server notices if this process is killed.
  write_whole(ends[1], script);
  const int code = to_exit_code(wait_for_child(child));
  if (code != 0) {
    print_error(text::format("the order for {} was not brought there by ssh (exit code {})", address, code));
  }
  return code;
}

int receive_order(std::vector<std::string> words) {
  const bool is_of_mpich = words.front() == daemon_of_mpich;
  const Descriptor orders = open_mpi_orders(".");
  keep_mpi_order(".", {std::move(words)});
  if (!has_entry("order")) {
    exit_with_error("the order is for none of mpirun's daemons, or the job's folder cannot be written");
  }
  const Host host;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (is_of_mpich && has_entry("order") && !read_own_history(".").has_ended()) {
    const auto supervisor = read_process_record("supervisor");
    if (has_entry("supervisor") && !(supervisor && is_alive(host, supervisor->process))) {
      break;
    }
    std::array<char, 256> buffer{};
    if (::poll(&input, 1, 200) > 0 && ::read(STDIN_FILENO, buffer.data(), buffer.size()) <= 0) {
      break;
    }
  }
  return 0;
}

}  // namespace remote::agent
