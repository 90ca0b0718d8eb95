#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "wire/pairs.hpp"

namespace remote::agent {

// `iperf3 -s` on a free port, if it is installed. It is stopped with this object, or when the thread that
// created it ends.
class IperfServer {
 public:
  // Waits up to a few seconds until it is ready, unless is_cancelled() returns true.
  IperfServer(const Host& host, const std::function<bool()>& is_cancelled);
  ~IperfServer() { end(); }
  IperfServer(const IperfServer&) = delete;
  IperfServer& operator=(const IperfServer&) = delete;

  int port() const { return port_; }  // 0: it is not ready
  // Its output, which must be drained. -1: it has exited.
  int output() const { return output_.get(); }
  void drain();

 private:
  bool start(const Host& host, int port);
  bool await_listening(const std::function<bool()>& is_cancelled);
  void end();

  int port_ = 0;
  pid_t pid_ = -1;
  Descriptor output_;
  std::string text_;  // output until it is ready
};

// Sends data to such a server. The result has the speed, or the error.
Flow send_by_iperf(const Host& host, const std::string& address, int port, int seconds);

// Parses the output of `iperf3 -J` as Gbit/s. If it failed, returns nullopt and sets `why`.
std::optional<double> read_iperf_answer(const std::string& json, std::string& why);

}  // namespace remote::agent
