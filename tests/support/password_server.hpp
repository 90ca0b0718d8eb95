#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "config/config.hpp"

namespace remote::test {

struct PasswordRules {
  std::string password;              // empty: disables the method
  std::vector<std::string> prompts;  // keyboard-interactive: the prompts …
  std::vector<bool> echo;            // … whether the answers are echoed …
  std::vector<std::string> answers;  // … and the right answers. No prompts: disables the method
  bool all = false;   // requires a key from home()'s .ssh/authorized_keys first, and then one of the above
  bool real = false;  // runs commands with sh in home(); the keys in its .ssh/authorized_keys can also log in
  bool open = false;  // no authentication needed, as with Tailscale
  std::string banner{};  // sends only this banner, like a server that waits for a login in a browser …
  std::shared_ptr<std::atomic<bool>> opened{};  // … until this is true; nullptr: forever
  bool closes = false;  // sends the banner only when a method is tried, and closes the connection, like PAM
};

// A small SSH server inside the test, based on libssh's server functions, for login methods that an sshd
// without root does not support. Every command prints "welcome USER" and exits with 0, unless the rules set
// `real`.
class PasswordServer {
 public:
  explicit PasswordServer(PasswordRules rules);
  ~PasswordServer();
  PasswordServer(const PasswordServer&) = delete;
  PasswordServer& operator=(const PasswordServer&) = delete;

  int port() const { return port_; }
  std::filesystem::path home() const { return folder_.path() / "home"; }
  // The number of passwords tried, right or wrong.
  int attempts() const { return attempts_; }
  config::Server server(const std::string& name, const std::string& user = "ann") const;

 private:
  void accept_loop();
  void serve(int fd);

  PasswordRules rules_;
  TempFolder folder_;
  int port_ = 0;
  UniqueFd listener_;
  std::atomic<int> attempts_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace remote::test
