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

// What a PasswordServer accepts.
struct PasswordRules {
  std::string password;              // empty: the method is off
  std::vector<std::string> prompts;  // keyboard-interactive: what it asks …
  std::vector<bool> echo;            // … whether the answers may be seen …
  std::vector<std::string> answers;  // … and what they must be. No prompts: the method is off
  bool all = false;   // a key of home()'s .ssh/authorized_keys first, and then one of the above
  bool real = false;  // commands run with sh in home(), and the keys in its .ssh/authorized_keys log in too
  bool open = false;  // no method is needed, as with Tailscale
  std::string banner{};  // is all that it answers, as if it waited for a page in a browser …
  std::shared_ptr<std::atomic<bool>> opened{};  // … until this is true; nullptr: for ever
  bool closes =
      false;  // sends the banner only when a method is tried, and closes the connection, as PAM does
};

// A small SSH server inside the test, over libssh's server half, for the ways to log in that an sshd without
// root does not have. Every command that runs on it says "welcome USER" and exits with 0, unless the rules
// say `real`.
class PasswordServer {
 public:
  explicit PasswordServer(PasswordRules rules);
  ~PasswordServer();
  PasswordServer(const PasswordServer&) = delete;
  PasswordServer& operator=(const PasswordServer&) = delete;

  int port() const { return port_; }
  std::filesystem::path home() const { return folder_.path() / "home"; }
  // Passwords that were tried, right or wrong.
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
