#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <remote/cancel.hpp>

#include "sandbox/processes.hpp"
#include "sandbox/sandbox.hpp"

// One practice server: its files, and its sshd. Private to sandbox.cpp.

namespace remote::sandbox {

struct SshdProgram {
  std::filesystem::path path;
  int version = 0;              // 908 is OpenSSH 9.8; 0 when it could not be told
  bool locked_account = false;  // the user's password is locked: only PAM then lets a key in
};

// Throws Error that names the package when there is none.
SshdProgram find_sshd(const std::string& name);

class SandboxNode {
 public:
  SandboxNode(const std::filesystem::path& sandbox, int number);

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path home() const { return folder_ / "home"; }
  std::filesystem::path config_file() const { return folder_ / "sshd_config"; }

  // The port it was given last; nullopt before its first start.
  std::optional<int> port() const;
  // Its running sshd, checked to be ours: a pid that went to a stranger is not.
  std::optional<Process> running() const;
  // Whether a process of a list is its sshd listener.
  bool is_listener(const Process& process) const;

  // The keys that its sshd accepts, outside the project, so that no project can bring or change them: the
  // sandbox's, and those that `remote authorize` has added.
  std::filesystem::path key_file() const;
  std::filesystem::path added_keys_file() const;
  // Makes folders, host key and key_file() where they are missing. A home that was not made here is moved
  // aside; returns its new name then.
  std::optional<std::filesystem::path> prepare(const Cancel& cancel) const;
  // Starts sshd and waits until it answers. False when the port is taken by somebody else.
  bool start(int port, const SandboxOptions& options, const SshdProgram& sshd, const Cancel& cancel) const;
  // "ssh-ed25519 AAAA…"
  std::string host_key() const;

 private:
  std::string token() const;

  std::filesystem::path sandbox_;
  std::filesystem::path folder_;
  std::string name_;
};

// A path as one word of sshd_config. Throws Error (usage) for a path that cannot stand there (newline).
std::string sshd_word(const std::string& text);

// Makes the key anew unless it is this user's, for nobody else to read, and made here before: a project that
// was copied may bring keys that others know.
void settle_key(const std::filesystem::path& file, const std::string& comment, const Cancel& cancel);

// Makes an ed25519 key without passphrase, and FILE.pub beside it.
void make_key(const std::filesystem::path& file, const std::string& comment, const Cancel& cancel);

// A port of 127.0.0.1 that nobody listens on now, below those that the system gives to outgoing connections.
int free_port();

}  // namespace remote::sandbox
