#include "sandbox/node.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/kept_modes.hpp"
#include "base/loopback.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "config/trust.hpp"

namespace remote::sandbox {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

UniqueFd tcp_socket() {
#ifdef SOCK_CLOEXEC
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
#else
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
#endif
  if (!fd) {
    throw Error("cannot make a socket", std::generic_category().message(errno),
                "is the limit of open files reached? see ulimit -n");
  }
  return fd;
}

bool port_is_free(int port) {
  const UniqueFd fd = tcp_socket();
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(fd.get(), 1) == 0;
}

// Whether an SSH server whose greeting ends with this token answers on the port within a second.
bool greets(int port, const std::string& token) {
  const UniqueFd fd = tcp_socket();
  const sockaddr_in address = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return false;
  }
  pollfd slot{fd.get(), POLLIN, 0};
  std::array<char, 255> line{};  // the longest greeting that the protocol allows; it is sent in one piece
  if (::poll(&slot, 1, 1000) <= 0) {
    return false;
  }
  const ssize_t count = ::recv(fd.get(), line.data(), line.size(), 0);
  const std::string_view greeting(line.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return greeting.starts_with("SSH-") && trim(greeting).ends_with(" " + token);
}

// Parses "OpenSSH_9.8p1, …" as 908; 0 if unknown.
int sshd_version(const fs::path& program) {
  SubprocessSpec spec;
  spec.argv = {program.string(), "-V"};
  const ExecResult result = run_subprocess(spec);
  const std::string text = result.out + result.err;
  const std::size_t at = text.find("OpenSSH_");
  int major = 0;
  int minor = 0;
  return at != std::string::npos && std::sscanf(text.c_str() + at, "OpenSSH_%4d.%2d", &major, &minor) == 2
             ? major * 100 + minor
             : 0;
}

// Whether this user is root with a locked password, as Debian's installer leaves it for users of sudo.
// Without PAM, sshd does not let a locked account log in at all, not even with a key. (Only root can read
// this, and another user's sshd cannot see it either.)
bool account_is_locked() {
  if (::geteuid() != 0) {
    return false;
  }
  const std::string shadow = "\n" + read_file_if_there("/etc/shadow").value_or("");
  return shadow.find("\nroot:!") != std::string::npos;
}

std::string sftp_server() {
  for (const char* path : {"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
                           "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server"}) {
    if (::access(path, X_OK) == 0) {
      return path;
    }
  }
  return {};
}

std::string config_text(const fs::path& sandbox, const SandboxNode& node, int port,
                        const SandboxOptions& options, const SshdProgram& sshd) {
  std::map<std::string, std::string> environment = options.environment;
  environment["HOME"] = node.home().string();
  environment["SHELL"] = options.shell;
  environment["REMOTE_SANDBOX"] = sandbox.string();
  environment["REMOTE_SANDBOX_NODE"] = node.name();
  environment["REMOTE_SANDBOX_ENTRY"] = (sandbox / "entry.sh").string();
  std::string variables;
  for (const auto& [name, value] : environment) {
    variables += " " + sshd_word(name + "=" + value);
  }
  const auto word = [](const fs::path& path) { return sshd_word(path.string()); };
  // sshd interprets % as the beginning of a token here.
  const auto key_file = [&sshd](const fs::path& path) {
    std::string text = replace_all(path.string(), "%", "%%");
    if (sshd.version >= 1000) {  // these versions interpret it as a glob pattern
      for (const char* special : {"\\", "*", "?", "["}) {
        text = replace_all(text, special, std::string("\\") + special);
      }
    }
    return sshd_word(text);
  };
  const std::string sftp = sftp_server();
  std::vector<std::string> lines = {"# Written by `remote sandbox up`."};
  lines.insert(lines.end(), options.sshd_config.begin(), options.sshd_config.end());
  lines.insert(lines.end(), {
                                "AddressFamily inet",
                                fmt::format("ListenAddress 127.0.0.1:{}", port),
                                "HostKey " + word(node.folder() / "host_key"),
                                "PidFile " + word(node.folder() / "sshd.pid"),
                                fmt::format("AuthorizedKeysFile {} {}", key_file(node.key_file()),
                                            key_file(node.added_keys_file())),
                                "StrictModes no",
                                "PasswordAuthentication no",
                                "KbdInteractiveAuthentication no",
                                "PrintMotd no",
                                "PrintLastLog no",
                                "UseDNS no",
                                "MaxStartups 1000",
                                fmt::format("UsePAM {}", sshd.locked_account ? "yes" : "no"),
                                fmt::format("MaxSessions {}", options.max_sessions),
                                // All clients here have the same address.
                                sshd.version >= 908 ? "PerSourcePenalties no" : "",
                                sftp.empty() ? "" : "Subsystem sftp " + sftp,
                                "SetEnv" + variables,  // on one line, because sshd uses only the first SetEnv
                                "ForceCommand exec /bin/sh \"$REMOTE_SANDBOX_ENTRY\"",
                            });
  return join(lines, "\n") + "\n";
}

}  // namespace

SshdProgram find_sshd(const std::string& name) {
  const auto program = find_program(name);
  if (!program) {
    throw Error("cannot start practice servers", name + " was not found on this machine",
                "install OpenSSH's server: apt-get install openssh-server");
  }
  const fs::path path = absolute_path(*program);  // sshd must be called with its full path
  return {path, sshd_version(path), account_is_locked()};
}

std::string sshd_word(const std::string& text) {
  if (text.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    throw Error::usage("cannot make a sandbox in " + text, "sshd does not support a path with a line break",
                       "put the project into another folder");
  }
  return "\"" + replace_all(replace_all(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
}

void settle_key(const fs::path& file, const std::string& comment, const Cancel& cancel) {
  const fs::path public_file = file.string() + ".pub";
  config::TrustStore store(file.parent_path());
  const auto made = [&] {
    return Demand{Demand::Kind::sandbox_key, "", file.string(),
                  sha256_hex(read_file(file) + read_file(public_file)), ""};
  };
  struct stat info {};
  if (::lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
      (info.st_mode & 07777) == 0600 && is_there(public_file) && store.allows(made())) {
    return;
  }
  std::error_code ignored;
  fs::remove_all(file, ignored);
  fs::remove_all(public_file, ignored);
  make_key(file, comment, cancel);
  store.allow({made()});
}

void make_key(const fs::path& file, const std::string& comment, const Cancel& cancel) {
  if (!find_program("ssh-keygen")) {
    throw Error("cannot make an SSH key", "ssh-keygen was not found on this machine",
                "install OpenSSH: apt-get install openssh-server (it includes openssh-client)");
  }
  SubprocessSpec spec;
  spec.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file.string()};
  const ExecResult result = run_subprocess(spec, {}, cancel);
  if (!result.status.success()) {
    throw Error("cannot make the SSH key " + file.string(), last_lines(result.err, 1),
                "can you write there, and does the disk have space?");
  }
}

int free_port() {
  for (int attempt = 0; attempt < 500; ++attempt) {
    const int port = static_cast<int>(random_between(20000, 32000));
    if (port_is_free(port)) {
      return port;
    }
  }
  throw Error("cannot find a free port", "500 ports tried between 20000 and 32000 are in use",
              "stop programs that use ports: ss -ltnp lists them");
}

SandboxNode::SandboxNode(const fs::path& sandbox, int number)
    : sandbox_(sandbox), name_("node-" + std::to_string(number)) {
  folder_ = sandbox / name_;
}

std::optional<int> SandboxNode::port() const {
  return parse_number<int>(trim(read_file_if_there(folder_ / "port").value_or("")));
}

// The token that distinguishes this sshd from all others. It is in its command line and its greeting. The
// path of its files is not used, because sshd shows it in an encoded form once it has set its own title.
std::string SandboxNode::token() const {
  return "remote-sandbox-" + std::string(trim(read_file_if_there(sandbox_ / "id").value_or("none"))) + "-" +
         name_;
}

bool SandboxNode::is_listener(const Process& process) const {
  // At its start, it is "/usr/sbin/sshd -o …". Soon after, sshd changes its title to "sshd: /usr/sbin/sshd -o
  // …".
  const std::string& command = process.command;
  const std::size_t program = command.find("sshd");
  return program != std::string::npos && command.substr(0, program).find(' ') == std::string::npos &&
         command.find(" VersionAddendum=" + token() + " ") != std::string::npos;
}

std::optional<Process> SandboxNode::running() const {
  // sshd writes the file, and removes it when it exits. If it was killed, the pid may belong to another
  // process.
  const auto pid = parse_number<pid_t>(trim(read_file_if_there(folder_ / "sshd.pid").value_or("")));
  auto process = pid ? find_process(*pid) : std::nullopt;
  if (process &&
      (!is_listener(*process) || ::kill(process->pid, 0) != 0)) {  // a process of another user is not ours
    process.reset();
  }
  return process;
}

fs::path SandboxNode::key_file() const {
  return config::state_folder() / "sandbox" / sha256_hex(folder_.string()).substr(0, 32);
}

fs::path SandboxNode::added_keys_file() const {
  return key_file().string() + ".added";
}

std::optional<fs::path> SandboxNode::prepare(const Cancel& cancel) const {
  settle_key(folder_ / "host_key", name_, cancel);
  // Trust a home directory only together with the host key created here: a copied project cannot contain a
  // home directory that matches an unknown key.
  config::TrustStore store(folder_);
  const Demand made{Demand::Kind::sandbox_key, "", home().string(),
                    sha256_hex(read_file(folder_ / "host_key")), ""};
  std::optional<fs::path> aside;
  std::error_code error;
  if (const bool there = is_there(home()) || is_link(home()); !there || !store.allows(made)) {
    if (there) {
      aside = folder_ / ("home.not-made-here-" + random_hex(4));
      fs::rename(home(), *aside, error);
    }
    make_folders(home() / ".ssh", 0700);
    if (!error) {
      fs::remove(added_keys_file(), error);
    }
    if (!error) {  // `remote authorize` writes to this folder
      fs::create_symlink(added_keys_file(), home() / ".ssh/authorized_keys", error);
    }
    if (error) {
      throw Error("cannot make " + home().string(), error.message(),
                  shows_no_links(error)
                      ? "this disk does not support links: create the sandbox in a project on another disk"
                      : "may you write there?");
    }
    store.allow({made});
  }
  make_folders(key_file().parent_path(), 0700);
  write_file_atomic(key_file(), read_file(sandbox_ / "id_ed25519.pub"), 0600);
  return aside;
}

bool SandboxNode::start(int port, const SandboxOptions& options, const SshdProgram& sshd,
                        const Cancel& cancel) const {
  if (!port_is_free(port)) {
    return false;
  }
  write_file_atomic(config_file(), config_text(sandbox_, *this, port, options, sshd), 0600);
  write_file_atomic(folder_ / "port", std::to_string(port) + "\n");
  std::error_code ignored;
  for (const char* old : {"sshd.pid", "sshd.log"}) {
    fs::remove(folder_ / old, ignored);
  }
  // It must not inherit a pipe or terminal, because a process that waits for our output to end would then
  // wait for sshd.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // The option -E is not used, because OpenSSH 10 expands its argument like a pattern.
  const fs::path log_file = folder_ / "sshd.log";
  const UniqueFd log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  SubprocessSpec spec;
  spec.argv = {
      sshd.path.string(), "-o", "VersionAddendum=" + token(), "-f", config_file().string(), "-D", "-e"};
  spec.directory = "/";
  spec.pass_fds = {{null.get(), 1}, {log.get(), 2}};
  spec.new_session = true;
  Subprocess process(spec);
  const auto give_up = Clock::now() + std::chrono::seconds(30);
  // sshd writes its pid file when it listens; its greeting then shows that it works.
  bool listens = false;
  while (!(listens && greets(port, token()))) {
    listens = listens || is_there(folder_ / "sshd.pid");
    const bool ended = process.poll().has_value();
    if (ended || Clock::now() > give_up) {
      const std::string said = replace_all(read_file_if_there(log_file).value_or(""), "\r", "");
      if (ended && said.find("Address already in use") != std::string::npos) {
        return false;
      }
      throw Error("cannot start sshd for " + name_,
                  ended ? last_lines(trim(said), 3) : "it does not answer on port " + std::to_string(port),
                  "see " + log_file.string());
    }
    cancel.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  process.release();
  return true;
}

std::string SandboxNode::host_key() const {
  const auto words = split_words(read_file(folder_ / "host_key.pub"));
  return words.size() < 2 ? std::string() : words[0] + " " + words[1];
}

}  // namespace remote::sandbox
