#pragma once

#include <chrono>
#include <filesystem>

#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "ssh/mux_protocol.hpp"

namespace remote::ssh {

// A port of the server's loopback address, or a socket there, whose connections an OpenSSH master brings to
// this machine, to a socket of ours in a folder of its own. One thread.
class MuxReverse {
 public:
  // Waits for the server's answer. Throws Error when it does not listen, or the master is gone.
  MuxReverse(const std::filesystem::path& control, mux::Listening at, std::chrono::milliseconds limit,
             const Cancel& cancel);
  // The server listens no longer.
  ~MuxReverse();
  MuxReverse(const MuxReverse&) = delete;
  MuxReverse& operator=(const MuxReverse&) = delete;

  const mux::Listening& at() const { return at_; }
  // Readable when a connection waits.
  int fd() const { return listener_.get(); }
  // The next connection; none when none waits.
  UniqueFd accept();

 private:
  std::filesystem::path control_;
  mux::Listening at_;
  TempFolder folder_;  // mode 0700
  UniqueFd listener_;
};

}  // namespace remote::ssh
