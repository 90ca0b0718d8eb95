#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <libssh/libssh.h>
#include <remote/cancel.hpp>

// Helpers for libssh: owners for its objects, and functions that wait for its non-blocking calls. Only files
// of src/ssh include this.

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

// The key that a function of libssh returns through its last argument; empty if it fails.
template <typename Function, typename... Args>
KeyPtr make_key(const Function& function, Args&&... args) {
  ssh_key key = nullptr;
  return KeyPtr(function(std::forward<Args>(args)..., &key) == SSH_OK ? key : nullptr);
}

// Initializes libssh, once per process. Call it before any other libssh function. Thread-safe.
void initialise_libssh();

// Why a server does not open a TCP connection for us if its settings forbid it (Channel::refusal()).
inline constexpr const char* forwarding_forbidden =
    "it forbids forwarding (AllowTcpForwarding, PermitOpen or DisableForwarding in its sshd_config)";

// libssh's last error message, or `otherwise` if there is none.
std::string last_error(ssh_session session, const std::string& otherwise);

// Whether the connection is closed, so that libssh's last error has no more information.
bool link_ended(ssh_session session);

// "SHA256:…", as ssh-keygen -l prints it.
std::string fingerprint(ssh_key key);
// "ssh-ed25519", "ecdsa-sha2-nistp256", …
std::string key_type_name(ssh_key key);
// The public key in base64, as in known_hosts and authorized_keys.
std::string key_base64(ssh_key key);

// The time limit for the steps of one connection, with cancellation. Not thread-safe.
class Patience {
 public:
  using clock = std::chrono::steady_clock;
  Patience(std::chrono::milliseconds time, Cancel cancel)
      : time_(time), deadline_(clock::now() + time), cancel_(std::move(cancel)) {}

  // Restarts the time, after a question to the user.
  void restart() { deadline_ = clock::now() + time_; }
  // Restarts the time, and makes it at least this long.
  void extend(std::chrono::milliseconds time) {
    time_ = std::max(time_, time);
    restart();
  }
  // The remaining time, but at most this long.
  Patience at_most(std::chrono::milliseconds time) const { return {std::min(time, left()), cancel_}; }
  bool over() const { return clock::now() >= deadline_; }
  std::chrono::milliseconds left() const;
  // The full time, for messages: "10 s".
  std::string text() const;
  const Cancel& cancel() const { return cancel_; }

  // Waits until `fd` is ready for `events`. Returns false when the time is over. Throws Interrupted.
  bool wait(int fd, short events) const;
  // Sleeps, but at most for the remaining time. Throws Interrupted.
  void sleep(std::chrono::milliseconds time) const;

 private:
  std::chrono::milliseconds time_;
  clock::time_point deadline_;
  Cancel cancel_;
};

// Asks the kernel to acknowledge the next packets without delay, if it supports this. sshd does not use
// TCP_NODELAY for small packets until the first command runs, so a delayed acknowledgment costs 40 ms.
void acknowledge_at_once(int fd);

// The events to wait for with poll(2) on libssh's socket.
short wanted_events(ssh_session session);

// Waits until libssh's socket is ready. Returns false when the time is over or the socket is closed.
bool wait_for_session(ssh_session session, const Patience& patience);

}  // namespace remote::ssh
