#include "agent/facts/ports.hpp"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/random.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/users.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int first_suggested = 20000;
constexpr int last_suggested = 32767;
constexpr std::string_view listening = "0A";  // the state's number in /proc/net/tcp

struct Listener {
  uid_t uid = 0;
  std::string inode;
};

struct Sockets {
  bool readable = false;
  std::bitset<65536> used;
  std::optional<Listener> listener;  // on the port in question
};

void read_socket(std::string_view line, int port, Sockets& sockets) {
  const std::vector<std::string> words = split_words(line);
  if (words.size() < 10) {
    return;
  }
  const std::string& address = words[1];
  const char* const digits = address.data() + address.rfind(':') + 1;
  const char* const end = address.data() + address.size();
  unsigned short number = 0;
  const auto [parsed, error] = std::from_chars(digits, end, number, 16);
  if (end - digits != 4 || parsed != end || error != std::errc()) {
    return;
  }
  sockets.used.set(number);
  const auto uid = parse_number<uid_t>(words[7]);
  if (number == port && words[3] == listening && uid && !sockets.listener) {
    sockets.listener = Listener{*uid, words[9]};
  }
}

Sockets read_sockets(const Host& host, int port) {
  Sockets sockets;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::vector<std::string> lines = read_lines(host.system(path));
    sockets.readable = sockets.readable || !lines.empty();
    for (const std::string& line : lines) {
      read_socket(line, port, sockets);
    }
  }
  return sockets;
}

bool has_open_socket(const Path& process, const std::string& link) {
  const Path descriptors = process / "fd";
  const std::vector<std::string> names = list_names(descriptors);
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return read_link(descriptors / name) == link; });
}

// Finds a process with this open socket; nullopt if this user cannot read the process's files.
std::optional<int> find_process(const Host& host, const std::string& inode) {
  const std::string link = "socket:[" + inode + "]";
  const Path proc = host.system("/proc");
  for (const std::string& name : list_names(proc)) {
    const auto pid = parse_number<int>(name);
    if (pid && *pid > 0 && has_open_socket(proc / name, link)) {
      return pid;
    }
  }
  return std::nullopt;
}

wire::PortHolder find_holder(const Host& host, const Listener& listener) {
  wire::PortHolder holder;
  holder.user = UserNames(host).find(listener.uid);
  holder.pid = find_process(host, listener.inode);
  if (holder.pid) {
    std::string name = read_file(find_process_folder(host, *holder.pid) / "comm").value_or("");
    if (name.ends_with('\n')) {
      name.pop_back();
    }
    holder.program = name.empty() ? "unknown" : wire::to_line(name, 64);
  }
  return holder;
}

unsigned make_seed() {
  unsigned seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof seed)) {
    seed = static_cast<unsigned>(::getpid());
  }
  return seed;
}

// Picks two unused ports at random. The kernel's range for outgoing connections is tried last, because a
// connection may take such a port before the job does.
std::vector<int> suggest_ports(const Host& host, const std::bitset<65536>& used) {
  constexpr unsigned count = last_suggested - first_suggested + 1;
  const std::vector<std::string> range =
      split_words(read_first_line(host.system("/proc/sys/net/ipv4/ip_local_port_range")));
  const int low = range.size() == 2 ? parse_number<int>(range[0]).value_or(0) : 0;
  const int high = range.size() == 2 ? parse_number<int>(range[1]).value_or(0) : 0;
  const unsigned seed = make_seed() % count;
  std::vector<int> found;
  for (const bool within : {false, true}) {
    for (unsigned i = 0; i < count && found.size() < 2; ++i) {
      const int port =
          first_suggested + static_cast<int>((seed + i * 7919) % count);  // a prime: all are tried
      if ((port >= low && port <= high) == within && !used.test(static_cast<std::size_t>(port))) {
        found.push_back(port);
      }
    }
  }
  return found;
}

}  // namespace

wire::PortFacts look_at_port(const Host& host, int port) {
  Sockets sockets = read_sockets(host, port);
  wire::PortFacts facts;
  if (port > 0 && sockets.readable) {
    facts.is_free = !sockets.listener;
    if (sockets.listener) {
      facts.holder = find_holder(host, *sockets.listener);
    }
  }
  sockets.used.set(static_cast<std::size_t>(port));
  const std::vector<int> free = suggest_ports(host, sockets.used);
  if (!free.empty()) {
    facts.suggested = free.front();
  }
  if (free.size() > 1) {
    facts.second = free.back();
  }
  return facts;
}

}  // namespace remote::agent
