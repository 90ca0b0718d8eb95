#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <sys/types.h>

// Practice servers on this machine: real sshd processes on 127.0.0.1 that run as the current user, each with
// a home folder of its own. Everything they have lies in PROJECT/.remote/sandbox/:
//
//   id_ed25519, id_ed25519.pub   the key that all of them accept
//   known_hosts                  their host keys
//   id                           tells its sshds from all others
//   lock                         held by a running up or down
//   node-1/home/                 $HOME of what runs on node-1
//   (the keys that each accepts are outside the project: SandboxNode::key_file)
//   node-1/host_key, sshd_config, sshd.log, sshd.pid, port

namespace remote::sandbox {

struct SandboxOptions {
  int nodes = 0;  // 0: those there are already, or that `ports` names, else 2
  // By name, for those that have had none yet: where configs.yaml looks for them.
  std::map<std::string, int> ports = {};
  int max_sessions = 10;          // sshd's MaxSessions; 10 is sshd's own default
  std::string shell = "/bin/sh";  // runs the commands, as a login shell does on a server
  std::map<std::string, std::string> environment = {};  // further variables of what runs there
  std::vector<std::string> sshd_config = {};  // lines that win over the sandbox's own; no Match, no SetEnv
  std::string sshd = "sshd";                  // program to run
};

struct SandboxServer {
  std::string name;            // "node-1"
  int port = 0;                // on 127.0.0.1
  pid_t pid = 0;               // of its sshd; 0 when it is not running
  std::filesystem::path home;  // absolute
  bool started = false;        // up(): it was not running before
  bool port_changed = false;   // up(): its former port was taken by somebody else
  // up(): where a home that this machine had not made was moved; or empty
  std::filesystem::path moved_aside = {};
};

// One sandbox. Several processes may use the same folder: up and down exclude each other.
class Sandbox {
 public:
  // `project` is the project's folder; its .remote/sandbox is made by up().
  explicit Sandbox(const std::filesystem::path& project);

  // Starts what does not run, waits until it answers, and returns the first `nodes` servers. Running servers
  // keep their process, port and settings. Throws Error; what was started by then stays up (down() ends it).
  std::vector<SandboxServer> up(const SandboxOptions& options = {}, const Cancel& cancel = Cancel());

  // Ends the servers, their sessions and every process that was started in them; homes, keys and ports
  // stay. Returns how many servers were running. Throws Error when something cannot be ended.
  int down() { return end(false); }

  // down(), then removes the sandbox's folder.
  int purge() { return end(true); }

  // All servers there are, running or not.
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
