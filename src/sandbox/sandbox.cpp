#include "sandbox/sandbox.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include <remote/error.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "sandbox/config.hpp"
#include "sandbox/node.hpp"
#include "sandbox/processes.hpp"
#include "servers/fanout.hpp"

namespace remote::sandbox {
namespace fs = std::filesystem;
namespace {

constexpr int max_nodes = 1000;
constexpr std::size_t start_width = 32;  // sshd processes that are started at the same time

// 3 for "node-3"; nullopt if it is not the name of a node.
std::optional<int> number_of(const std::string& name) {
  const auto number = name.starts_with("node-") ? parse_number<int>(name.substr(5)) : std::nullopt;
  return number && *number > 0 && *number <= max_nodes ? number : std::nullopt;
}

// The nodes whose folders exist, sorted by number.
std::vector<SandboxNode> nodes_there(const fs::path& folder) {
  std::set<int> numbers;
  for (const fs::path& entry : entries_of(folder)) {
    if (const auto number = number_of(entry.filename().string())) {
      numbers.insert(*number);
    }
  }
  std::vector<SandboxNode> nodes;
  for (const int number : numbers) {
    nodes.emplace_back(folder, number);
  }
  return nodes;
}

SandboxServer describe(const SandboxNode& node) {
  const auto process = node.running();
  return {.name = node.name(),
          .port = node.port().value_or(0),
          .pid = process ? process->pid : 0,
          .home = node.home()};
}

// An sshd of root uses chroot(2) to enter this folder before authentication, and exits if it is missing. The
// system creates it when its own sshd starts, which may never have happened.
void make_privilege_separation_folder() {
  if (::geteuid() == 0) {
    make_folders("/run/sshd", 0755);
  }
}

SandboxServer bring_up(const SandboxNode& node, const SandboxOptions& options, const SshdProgram& sshd,
                       const Cancel& cancel) {
  SandboxServer server = describe(node);
  if (server.pid != 0) {
    return server;
  }
  const auto aside = node.prepare(cancel);
  const auto wanted = options.ports.find(node.name());
  const auto former = node.port() || wanted == options.ports.end() ? node.port() : wanted->second;
  bool up = former && node.start(*former, options, sshd, cancel);
  server.port_changed = former && !up;
  for (int attempt = 0; !up && attempt < 20; ++attempt) {
    up = node.start(free_port(), options, sshd, cancel);
  }
  if (!up) {
    throw Error("cannot start sshd", "20 ports that seemed free were taken when it asked for them",
                "try again; ss -ltnp lists the owner of each port");
  }
  SandboxServer result = describe(node);
  result.started = true;
  result.port_changed = server.port_changed;
  result.moved_aside = aside.value_or(fs::path());
  return result;
}

void write_known_hosts(const fs::path& file, const std::vector<SandboxNode>& nodes) {
  std::string text;
  for (const SandboxNode& node : nodes) {
    if (const auto port = node.port(); port && is_there(node.folder() / "host_key.pub")) {
      text += "[127.0.0.1]:" + std::to_string(*port) + " " + node.host_key() + "\n";
    }
  }
  if (read_file_if_there(file) != text) {
    write_file_atomic(file, text, 0600);
  }
}

// The sandbox's processes: its sshds and their descendants, processes with the sandbox's mark in their
// environment and their descendants, and the session's sshd of such a process, whose listener may be gone.
// Excludes this process and its ancestors, because `down` may be run in a session of the sandbox.
std::vector<Process> processes_of(const fs::path& folder, const std::vector<SandboxNode>& nodes) {
  const std::vector<Process> all = list_processes("REMOTE_SANDBOX=" + folder.string());
  const auto by_pid = [&](pid_t pid) { return std::ranges::find(all, pid, &Process::pid); };
  std::vector<pid_t> roots;
  for (const Process& process : all) {
    if (process.marked ||
        std::ranges::any_of(nodes, [&](const SandboxNode& node) { return node.is_listener(process); })) {
      roots.push_back(process.pid);
    }
    const auto parent = process.marked ? by_pid(process.parent) : all.end();
    if (parent != all.end() &&
        (parent->command.starts_with("sshd: ") || parent->command.starts_with("sshd-session: "))) {
      roots.push_back(parent->pid);
    }
  }
  std::set<pid_t> spared;
  for (auto self = by_pid(::getpid()); self != all.end(); self = by_pid(self->parent)) {
    spared.insert(self->pid);
  }
  std::vector<Process> result = with_descendants(all, roots);
  std::erase_if(result,
                [&](const Process& process) { return process.zombie || spared.contains(process.pid); });
  return result;
}

// A link could redirect the files that `up` writes and `down --purge` removes.
void make_own_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::weakly_canonical(folder, error) != folder || error) {
    throw Error::usage("cannot make practice servers in " + folder.string(), "a symbolic link leads there",
                       "remove the link, then run the command again");
  }
  make_folders(folder, 0700);
  fs::permissions(folder, fs::perms::owner_all, error);
  if (error) {
    throw Error::usage("cannot make practice servers in " + folder.string(), error.message(),
                       "remove the folder, then run the command again");
  }
}

int end_all(const fs::path& folder) {
  const std::vector<SandboxNode> nodes = nodes_there(folder);
  std::vector<pid_t> listeners;
  for (const SandboxNode& node : nodes) {
    if (const auto process = node.running()) {
      listeners.push_back(process->pid);
    }
  }
  end_processes([&] { return processes_of(folder, nodes); }, std::chrono::seconds(2));
  for (const pid_t pid : listeners) {
    ::waitpid(pid, nullptr, WNOHANG);  // reaps those that this process itself started
  }
  for (const SandboxNode& node : nodes) {
    std::error_code ignored;
    fs::remove(node.folder() / "sshd.pid", ignored);
  }
  return static_cast<int>(listeners.size());
}

}  // namespace

Sandbox::Sandbox(const fs::path& project) {
  // The path is written to files and environments and compared later, so always use the same spelling.
  const fs::path one = resolved(absolute_path(project));
  folder_ = (one.has_filename() ? one : one.parent_path()) / ".remote/sandbox";
}

std::vector<SandboxServer> Sandbox::up(const SandboxOptions& options, const Cancel& cancel) {
  if (options.nodes < 0 || options.nodes > max_nodes) {
    throw Error::usage("sandbox up",
                       "the number of nodes must be between 1 and " + std::to_string(max_nodes));
  }
  sshd_word(folder_.string());  // rejects a path that sshd does not support before anything is written
  const SshdProgram sshd = find_sshd(options.sshd);
  make_privilege_separation_folder();
  make_own_folder(folder_);
  const FileLock lock(folder_ / "lock", &cancel);
  write_file_atomic(folder_ / ".gitignore", "*\n");
  settle_key(private_key(), "remote sandbox", cancel);
  if (!is_there(folder_ / "id")) {
    write_file_atomic(folder_ / "id", random_hex(12) + "\n");
  }
  write_file_atomic(folder_ / "entry.sh", sample_file("entry.sh"));
  const auto there = static_cast<int>(nodes_there(folder_).size());
  int named = 0;
  for (const auto& [name, port] : options.ports) {
    named = std::max(named, number_of(name).value_or(0));
  }
  const int usual = std::max(there, named);
  const int wanted = options.nodes > 0 ? options.nodes : usual > 0 ? usual : 2;
  std::vector<SandboxNode> nodes;
  for (int number = 1; number <= wanted; ++number) {
    nodes.emplace_back(folder_, number);
    make_own_folder(nodes.back().folder());  // create all of them first, so that down() finds each
  }
  std::vector<SandboxServer> servers = servers::values_of(servers::fan_out(
      nodes, &SandboxNode::name,
      [&](const SandboxNode& node, std::size_t) { return bring_up(node, options, sshd, cancel); },
      start_width));
  write_known_hosts(known_hosts(), nodes_there(folder_));
  return servers;
}

int Sandbox::end(bool remove) {
  if (!is_there(folder_)) {
    return 0;
  }
  const FileLock lock(folder_ / "lock");
  const int ended = end_all(folder_);
  std::error_code error;
  if (remove) {
    for (const SandboxNode& node : nodes_there(folder_)) {
      fs::remove(node.key_file(), error);
      fs::remove(node.added_keys_file(), error);
    }
    fs::remove_all(folder_, error);
  }
  if (error) {
    throw Error("cannot remove " + folder_.string(), error.message(),
                "its files may belong to another user; remove it by hand");
  }
  return ended;
}

std::vector<SandboxServer> Sandbox::status() const {
  std::vector<SandboxServer> servers;
  for (const SandboxNode& node : nodes_there(folder_)) {
    servers.push_back(describe(node));
  }
  return servers;
}

}  // namespace remote::sandbox
