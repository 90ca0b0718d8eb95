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

// Ways to a server that are not plain TCP: a jump host, which one connection and one thread serve for all
// servers behind it, and a ProxyCommand.

namespace remote::ssh {

class Bastion;

// A socket that leads to one server through a jump host.
class JumpSocket {
 public:
  UniqueFd take_fd() { return std::move(fd_); }
  // Why the jump host did not connect; empty while it may still, or has.
  std::string refusal() const;

 private:
  friend class Bastion;
  UniqueFd fd_;
  std::shared_ptr<Bastion> bastion_;  // lives as long as somebody goes through it
  // Shared with the bastion's thread, which must never hold the last reference to a Bastion.
  struct Refusal {
    std::mutex mutex;
    std::string reason;
  };
  std::shared_ptr<Refusal> refusal_ = std::make_shared<Refusal>();
};

// A connection to a jump host and the thread that owns it. Ends with its last JumpSocket and BastionPool.
class Bastion : public std::enable_shared_from_this<Bastion> {
 public:
  // `name` is for messages.
  Bastion(std::unique_ptr<Session> session, std::string name);
  ~Bastion();
  Bastion(const Bastion&) = delete;
  Bastion& operator=(const Bastion&) = delete;

  const std::string& name() const { return name_; }
  bool alive() const { return !dead_; }
  // Begins a connection to host:port as the jump host sees it, and returns at once: what is written to the
  // socket waits until the way stands. Any thread.
  std::shared_ptr<JumpSocket> open(const std::string& host, int port);

 private:
  struct Way;
  void run();
  void take_requests();
  void serve();

  std::string name_;
  std::unique_ptr<Session> session_;
  Pipe wake_ = make_pipe();  // a byte in it makes the thread look at requests_
  Cancel stop_;
  Pump pump_{*session_, stop_};
  std::atomic<bool> dead_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Way>> requests_;
  std::vector<std::unique_ptr<Way>> ways_;  // the thread's own
  std::thread thread_;
};

// The jump hosts of one command. Any thread.
class BastionPool {
 public:
  // The living connection under this key, or what `make` returns. A thread that asks while another one makes
  // it waits for that and shares the outcome, also a failure.
  std::shared_ptr<Bastion> get(const std::string& key, const Cancel& cancel,
                               const std::function<std::shared_ptr<Bastion>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<std::shared_ptr<Bastion>>> bastions_;
};

// A ProxyCommand that runs: its stdin and stdout are the socket.
class ProxyCommand {
 public:
  // Starts `sh -c "exec COMMAND"`, as OpenSSH does.
  explicit ProxyCommand(const std::string& command);
  UniqueFd take_fd() { return std::move(fd_); }
  // The last lines that it wrote to stderr, for an error message.
  std::string complaint() const;

 private:
  UniqueFd fd_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> errors_;  // has no name
  std::optional<Subprocess> child_;
};

}  // namespace remote::ssh
