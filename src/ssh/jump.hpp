#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "ssh/libssh.hpp"
#include "ssh/pump.hpp"
#include "ssh/session.hpp"

// Transports to a server other than plain TCP: a jump host, whose single connection and thread serve all
// servers behind it, and a ProxyCommand.

namespace remote::ssh {

class Bastion;

// A socket connected to one server through a jump host.
class JumpSocket {
 public:
  UniqueFd take_fd() { return std::move(fd_); }
  // Why the jump host did not connect; empty while it is connecting, or if it has connected.
  std::string refusal() const;

 private:
  friend class Bastion;
  UniqueFd fd_;
  std::shared_ptr<Bastion> bastion_;  // kept alive while any socket uses it
  // Shared with the bastion's thread, which must never hold the last reference to a Bastion.
  struct Refusal {
    std::mutex mutex;
    std::string reason;
  };
  std::shared_ptr<Refusal> refusal_ = std::make_shared<Refusal>();
};

// A connection to a jump host, and the thread that owns it. It ends with its last JumpSocket and BastionPool.
class Bastion : public std::enable_shared_from_this<Bastion> {
 public:
  // `name` is used in messages.
  Bastion(std::unique_ptr<Session> session, std::string name);
  ~Bastion();
  Bastion(const Bastion&) = delete;
  Bastion& operator=(const Bastion&) = delete;

  const std::string& name() const { return name_; }
  bool alive() const { return !dead_; }
  // Starts a connection to host:port, which the jump host resolves, and returns immediately. Data written to
  // the socket is delivered once it is connected. Any thread.
  std::shared_ptr<JumpSocket> open(const std::string& host, int port);

 private:
  struct Way;
  void run();
  void take_requests();
  void serve();

  std::string name_;
  std::unique_ptr<Session> session_;
  Pipe wake_ = make_pipe();  // a byte in it makes the thread check requests_
  Cancel stop_;
  Pump pump_{*session_, stop_};
  std::atomic<bool> dead_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Way>> requests_;
  std::vector<std::unique_ptr<Way>> ways_;  // used only by the thread
  std::thread thread_;
};

// The jump hosts of one command. Thread-safe.
class BastionPool {
 public:
  // The live connection with this key, or the result of `make`. If another thread is making it, waits for
  // that thread and shares its result, even a failure.
  std::shared_ptr<Bastion> get(const std::string& key, const Cancel& cancel,
                               const std::function<std::shared_ptr<Bastion>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<std::shared_ptr<Bastion>>> bastions_;
};

// A running ProxyCommand. The socket is its stdin and stdout.
class ProxyCommand {
 public:
  // Starts `sh -c "exec COMMAND"`, like OpenSSH.
  explicit ProxyCommand(const std::string& command);
  UniqueFd take_fd() { return std::move(fd_); }
  // The last lines of its stderr, for an error message.
  std::string complaint() const;

 private:
  UniqueFd fd_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> errors_;  // an unnamed file
  std::optional<Subprocess> child_;
};

}  // namespace remote::ssh
