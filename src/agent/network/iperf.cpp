#include "agent/network/iperf.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/network/socket_address.hpp"
#include "wire/parse_json.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds serve_limit{5};
constexpr seconds iperf_spare{10};  // how much longer than the sending time iperf3 may take
constexpr int iperf_ports = 5;
constexpr int iperf_tries = 3;
constexpr double most_gbit_s = 1e6;  // more than any network carries

}  // namespace

IperfServer::IperfServer(const Host& host, const std::function<bool()>& is_cancelled) {
  for (int i = 0; i < iperf_ports && port_ == 0; ++i) {
    const int port = find_free_port(false);
    if (port == 0 || !start(host, port)) {
      return;
    }
    if (await_listening(is_cancelled)) {
      port_ = port;
    } else {
      end();
    }
  }
}

bool IperfServer::start(const Host& host, int port) {
  const Path program = host.find_program("iperf3");
  Pipe pipe = open_pipe(O_NONBLOCK);
  if (program.empty() || !pipe) {
    return false;
  }
  output_ = std::move(pipe.read_end);
  const Descriptor input = std::move(pipe.write_end);
  std::vector<std::string> argv{"iperf3", "-s", "-p", std::to_string(port), "--forceflush"};
  std::vector<std::string> environment = host.list_variables();
  const std::vector<char*> arguments = pointers_to(argv);
  const std::vector<char*> variables = pointers_to(environment);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only system calls, because other threads may hold locks.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    const int nothing = ::open("/dev/null", O_RDWR);
    if (::getppid() == parent && ::dup2(nothing, 0) == 0 && ::dup2(input.get(), 1) == 1 &&
        ::dup2(nothing, 2) == 2) {
      close_descriptors(3);
      ::execve(program.c_str(), arguments.data(), variables.data());
    }
    ::_exit(127);
  }
  return pid_ > 0;
}

bool IperfServer::await_listening(const std::function<bool()>& is_cancelled) {
  const auto limit = std::chrono::steady_clock::now() + serve_limit;
  while (output_ && std::chrono::steady_clock::now() < limit && !is_cancelled()) {
    pollfd ready{output_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 100) > 0) {
      drain();
    }
    if (text_.find("listening") != std::string::npos) {
      return true;
    }
  }
  return false;
}

void IperfServer::drain() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
  if (count > 0 && text_.size() < buffer.size()) {
    text_.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0) {
    output_.reset();
  }
}

void IperfServer::end() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  text_.clear();
}

std::optional<double> read_iperf_answer(const std::string& json, std::string& why) {
  const auto document = wire::JsonDocument::parse(json);
  const wire::Value nothing;
  const auto find = [&](const wire::Value& value, const char* name) -> const wire::Value& {
    const wire::Value* const found = value.find(name);
    return found == nullptr ? nothing : *found;
  };
  const wire::Value& answer = document ? document->value() : nothing;
  const wire::Value& error = find(answer, "error");
  const wire::Value& bits = find(find(find(answer, "end"), "sum_received"), "bits_per_second");
  if (error.is(wire::Value::Kind::string)) {
    why = wire::to_line(error.string, 180);
    return std::nullopt;
  }
  const double gbit_s = bits.is_number() ? bits.to_double() / 1e9 : -1;
  if (!(gbit_s >= 0 && gbit_s <= most_gbit_s)) {  // false for NaN
    why = "its answer is not understood";
    return std::nullopt;
  }
  return gbit_s;
}

Flow send_by_iperf(const Host& host, const std::string& address, int port, int seconds) {
  Flow flow;
  std::string why;
  for (int i = 0; i < iperf_tries; ++i) {
    if (host.find_program("iperf3").empty()) {
      flow.error = "iperf3 cannot be started";
      return flow;
    }
    const RunResult result = run(host, {.argv = {"iperf3", "-c", address, "-p", std::to_string(port), "-t",
                                                 std::to_string(seconds), "-J", "--connect-timeout", "3000"},
                                        .limit = std::chrono::seconds(seconds) + iperf_spare});
    if (const auto gbit_s = read_iperf_answer(result.out, why)) {
      flow.gbit_s = *gbit_s;
      return flow;
    }
    if (why.find("busy") == std::string::npos) {
      break;
    }
    ::usleep(300'000);
  }
  flow.error = "iperf3: " + why;
  return flow;
}

}  // namespace remote::agent
