#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <sys/types.h>

// Practice servers on this machine: real sshd processes on 127.0.0.1 that run as the current user, each with
// its own home directory. All of their files are in PROJECT/.remote/sandbox/:
//
//   id_ed25519, id_ed25519.pub   the key that all of them accept
//   known_hosts                  their host keys
//   id                           distinguishes its sshds from all others
//   lock                         held by a running up or down
//   node-1/home/                 $HOME of processes on node-1
//   (the keys that each accepts are outside the project: SandboxNode::key_file)
//   node-1/host_key, sshd_config, sshd.log, sshd.pid, port

namespace remote::sandbox {

struct SandboxOptions {
  int nodes = 0;  // 0: the existing ones, or those in `ports`, or else 2
  // Ports in configs.yaml by name, for servers that have not had a port yet.
  std::map<std::string, int> ports = {};
  int max_sessions = 10;                                // sshd's MaxSessions; 10 is sshd's own default
  std::string shell = "/bin/sh";                        // runs the commands, like a login shell on a server
  std::map<std::string, std::string> environment = {};  // additional variables for processes there
  std::vector<std::string> sshd_config = {};  // lines that override the sandbox's own; no Match, no SetEnv
  std::string sshd = "sshd";                  // the program to run
};

struct SandboxServer {
  std::string name;            // "node-1"
  int port = 0;                // on 127.0.0.1
  pid_t pid = 0;               // of its sshd; 0 if it is not running
  std::filesystem::path home;  // absolute
  bool started = false;        // set by up(): it was not running before
  bool port_changed = false;   // set by up(): its previous port was taken by another process
  // Set by up(): where a home directory was moved that this machine had not created; otherwise empty.
  std::filesystem::path moved_aside = {};
};

// A sandbox. Several processes may use the same folder: up and down exclude each other.
class Sandbox {
 public:
  // `project` is the project's folder; up() creates .remote/sandbox in it.
  explicit Sandbox(const std::filesystem::path& project);

  // Starts servers that are not running, waits until they answer, and returns the first `nodes` servers.
  // Running servers keep their process, port and settings. Throws Error, in which case the servers started so
  // far keep running (down() stops them).
  std::vector<SandboxServer> up(const SandboxOptions& options = {}, const Cancel& cancel = Cancel());

  // Stops the servers, their sessions and every process that was started in them; home directories, keys and
  // ports are kept. Returns the number of servers that were running. Throws Error if a process cannot be
  // stopped.
  int down() { return end(false); }

  // Calls down(), then removes the sandbox's folder.
  int purge() { return end(true); }

  // All existing servers, running or not.
  std::vector<SandboxServer> status() const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path private_key() const { return folder_ / "id_ed25519"; }
  std::filesystem::path known_hosts() const { return folder_ / "known_hosts"; }
  std::filesystem::path log(const std::string& name) const { return folder_ / name / "sshd.log"; }

 private:
  int end(bool remove);

  std::filesystem::path folder_;
};

}  // namespace remote::sandbox
