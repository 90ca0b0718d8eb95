#pragma once

#include <chrono>
#include <filesystem>

#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "ssh/mux_protocol.hpp"

namespace remote::ssh {

// A port on the server's loopback address, or a socket there. An OpenSSH master forwards its connections to a
// socket of ours on this machine, in a folder of its own. Not thread-safe.
class MuxReverse {
 public:
  // Waits for the server's answer. Throws Error if the server refuses to listen, or if the master is gone.
  MuxReverse(const std::filesystem::path& control, mux::Listening at, std::chrono::milliseconds limit,
             const Cancel& cancel);
  // Makes the server stop listening.
  ~MuxReverse();
  MuxReverse(const MuxReverse&) = delete;
  MuxReverse& operator=(const MuxReverse&) = delete;

  const mux::Listening& at() const { return at_; }
  // Readable when a connection is waiting.
  int fd() const { return listener_.get(); }
  // The next connection; an empty descriptor if none is waiting.
  UniqueFd accept();

 private:
  std::filesystem::path control_;
  mux::Listening at_;
  TempFolder folder_;  // mode 0700
  UniqueFd listener_;
};

}  // namespace remote::ssh
