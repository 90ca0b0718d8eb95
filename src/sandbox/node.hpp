#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <remote/cancel.hpp>

#include "sandbox/processes.hpp"
#include "sandbox/sandbox.hpp"

// One practice server: its files and its sshd. Private to sandbox.cpp.

namespace remote::sandbox {

struct SshdProgram {
  std::filesystem::path path;
  int version = 0;              // 908 means OpenSSH 9.8; 0 if unknown
  bool locked_account = false;  // the user's password is locked, so only PAM allows a login with a key
};

// Throws Error that names the package to install if there is none.
SshdProgram find_sshd(const std::string& name);

class SandboxNode {
 public:
  SandboxNode(const std::filesystem::path& sandbox, int number);

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path home() const { return folder_ / "home"; }
  std::filesystem::path config_file() const { return folder_ / "sshd_config"; }

  // Its last port; nullopt before its first start.
  std::optional<int> port() const;
  // Its running sshd, verified to be ours and not another process with the same pid.
  std::optional<Process> running() const;
  // Whether a listed process is its sshd listener.
  bool is_listener(const Process& process) const;

  // The keys that its sshd accepts: the sandbox's, and those added by `remote authorize`. They are outside
  // the project, so that no project can add or change them.
  std::filesystem::path key_file() const;
  std::filesystem::path added_keys_file() const;
  // Creates missing folders, the host key and key_file(). A home directory that was not created on this
  // machine is moved aside; then returns its new path.
  std::optional<std::filesystem::path> prepare(const Cancel& cancel) const;
  // Starts sshd and waits until it answers. Returns false if another process uses the port.
  bool start(int port, const SandboxOptions& options, const SshdProgram& sshd, const Cancel& cancel) const;
  // "ssh-ed25519 AAAA…"
  std::string host_key() const;

 private:
  std::string token() const;

  std::filesystem::path sandbox_;
  std::filesystem::path folder_;
  std::string name_;
};

// A path as one word of sshd_config. Throws Error (usage) for a path that is not possible there (newline).
std::string sshd_word(const std::string& text);

// Creates a new key, unless the file is owned by this user, unreadable for others, and was created here
// before: a copied project may contain keys that others know.
void settle_key(const std::filesystem::path& file, const std::string& comment, const Cancel& cancel);

// Creates an ed25519 key without a passphrase, and FILE.pub next to it.
void make_key(const std::filesystem::path& file, const std::string& comment, const Cancel& cancel);

// A port of 127.0.0.1 on which no process listens now, below the system's range for outgoing connections.
int free_port();

}  // namespace remote::sandbox
