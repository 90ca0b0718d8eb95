#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <libssh/libssh.h>
#include <remote/cancel.hpp>

// What C++ needs for libssh: owners for its objects, and the one way in which its non-blocking calls wait.
// Only files of src/ssh include this.

namespace remote::ssh {

struct FreeSession {
  void operator()(ssh_session session) const { ssh_free(session); }
};
struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
struct FreeChannel {
  void operator()(ssh_channel channel) const { ssh_channel_free(channel); }
};
using SessionPtr = std::unique_ptr<ssh_session_struct, FreeSession>;
using ChannelPtr = std::unique_ptr<ssh_channel_struct, FreeChannel>;
using KeyPtr = std::unique_ptr<ssh_key_struct, FreeKey>;

// The key that a function of libssh hands out by its last argument; empty when it fails.
template <typename Function, typename... Args>
KeyPtr make_key(const Function& function, Args&&... args) {
  ssh_key key = nullptr;
  return KeyPtr(function(std::forward<Args>(args)..., &key) == SSH_OK ? key : nullptr);
}

// Initialises libssh, once for the process. Call before the first other call; any thread may.
void initialise_libssh();

// Why a server opens no TCP connection for us, if its settings forbid it (Channel::refusal()).
inline constexpr const char* forwarding_forbidden =
    "it forbids forwarding (AllowTcpForwarding, PermitOpen or DisableForwarding in its sshd_config)";

// libssh's text for its last error, or `otherwise` when it has none.
std::string last_error(ssh_session session, const std::string& otherwise);

// Whether the link is gone, so that libssh's last error tells nothing else.
bool link_ended(ssh_session session);

// "SHA256:…", as ssh-keygen -l prints it.
std::string fingerprint(ssh_key key);
// "ssh-ed25519", "ecdsa-sha2-nistp256", …
std::string key_type_name(ssh_key key);
// The public key as base64, as known_hosts and authorized_keys have it.
std::string key_base64(ssh_key key);

// How long the steps of one connection may wait, and what stops them. Used by one thread.
class Patience {
 public:
  using clock = std::chrono::steady_clock;
  Patience(std::chrono::milliseconds time, Cancel cancel)
      : time_(time), deadline_(clock::now() + time), cancel_(std::move(cancel)) {}

  // A person was asked something in between: the time starts anew.
  void restart() { deadline_ = clock::now() + time_; }
  // The time starts anew, and is no less than this.
  void extend(std::chrono::milliseconds time) {
    time_ = std::max(time_, time);
    restart();
  }
  // What is left of it, but no more than this.
  Patience at_most(std::chrono::milliseconds time) const { return {std::min(time, left()), cancel_}; }
  bool over() const { return clock::now() >= deadline_; }
  std::chrono::milliseconds left() const;
  // All of its time, for a message: "10 s".
  std::string text() const;
  const Cancel& cancel() const { return cancel_; }

  // Waits until `fd` is ready for `events`; false when the time is over. Throws Interrupted.
  bool wait(int fd, short events) const;
  // Sleeps, but no longer than the time that is left. Throws Interrupted.
  void sleep(std::chrono::milliseconds time) const;

 private:
  std::chrono::milliseconds time_;
  clock::time_point deadline_;
  Cancel cancel_;
};

// Asks the kernel to acknowledge what comes next without delay (where it can). sshd sends small packets
// without TCP_NODELAY until the first command runs, so that a delayed acknowledgement costs 40 ms.
void acknowledge_at_once(int fd);

// What poll(2) is to wait for on libssh's socket.
short wanted_events(ssh_session session);

// Waits until libssh's socket has something for it. False when the time is over or the socket is gone.
bool wait_for_session(ssh_session session, const Patience& patience);

}  // namespace remote::ssh
