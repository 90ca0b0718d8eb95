#include "support/local_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "ssh/path.hpp"
#include "ssh/tcp.hpp"
#include "support/paths.hpp"
#include "support/processes.hpp"

namespace remote::test {

namespace fs = std::filesystem;

struct LocalServers::State {
  TempFolder folder{"remote-local-"};
  ServerShell shell = ServerShell::dash;
  mutable std::mutex mutex;
  Faults faults;
  std::map<std::string, std::string> variables;
  int commands = 0;
  int connects = 0;
  std::vector<Subprocess> left;  // commands whose channel closed before they ended

  // Counts a command and returns the fault to inject.
  enum class Fault { none, before, after, cut };
  std::pair<Fault, std::size_t> next_command() {
    const std::scoped_lock lock(mutex);
    ++commands;
    if (commands == faults.before) {
      return {Fault::before, 0};
    }
    if (commands == faults.after) {
      return {Fault::after, 0};
    }
    return {commands == faults.cut ? Fault::cut : Fault::none, faults.cut_bytes};
  }
  bool loses_packets() const {
    const std::scoped_lock lock(mutex);
    return faults.lost_packets;
  }
  std::string path() const { return (folder.path() / "bin").string() + ":/usr/local/bin:/usr/bin:/bin"; }
};

namespace {

using State = LocalServers::State;

ssh::Unreachable dead_link(bool lost_packets) {
  return {"connection lost", "the link broke (injected fault)", lost_packets ? ssh::path_hint : ""};
}

// State shared by a channel and its connection.
struct Pipes {
  explicit Pipes(const SubprocessSpec& spec) : process(spec) {
    for (const UniqueFd* fd : {&process.stdin_fd, &process.stdout_fd, &process.stderr_fd}) {
      ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    }
  }
  Subprocess process;
  ssh::Sink sink;
  std::string pending;  // data not yet written to stdin
  bool input_closed = false;
  bool paused = false;
  std::optional<ExitStatus> status;
  State::Fault fault = State::Fault::none;
  std::size_t cut_bytes = 0;
  bool dropped = false;  // its Channel was destroyed

  bool done() const { return !process.stdout_fd && !process.stderr_fd && status.has_value(); }
};

class LocalChannel : public ssh::Channel {
 public:
  LocalChannel(std::shared_ptr<Pipes> pipes, std::shared_ptr<State> state)
      : pipes_(std::move(pipes)), state_(std::move(state)) {}
  ~LocalChannel() override {
    // like sshd: closes the pipes and lets the command find out
    pipes_->dropped = true;
    pipes_->process.stdin_fd.reset();
    pipes_->process.stdout_fd.reset();
    pipes_->process.stderr_fd.reset();
    if (!pipes_->status) {
      const std::scoped_lock lock(state_->mutex);
      state_->left.push_back(std::move(pipes_->process));
    }
  }
  LocalChannel(const LocalChannel&) = delete;
  LocalChannel& operator=(const LocalChannel&) = delete;

  std::size_t writable() const override {
    constexpr std::size_t window = 65536;
    return pipes_->input_closed ? 0 : window - std::min(window, pipes_->pending.size());
  }
  void write(std::string_view data) override { pipes_->pending += data; }
  void close_input() override {
    pipes_->input_closed = true;
    if (pipes_->pending.empty()) {
      pipes_->process.stdin_fd.reset();
    }
  }
  void pause(bool paused) override { pipes_->paused = paused; }
  bool finished() const override { return pipes_->done(); }
  std::optional<ExitStatus> status() const override { return pipes_->status; }

 private:
  std::shared_ptr<Pipes> pipes_;
  std::shared_ptr<State> state_;
};

// A TCP connection that the server makes, and its local end.
struct LocalTcp {
  UniqueFd fd;
  ssh::Sink sink;
  std::string pending;
  std::string refusal;
  bool input_closed = false;
  bool output_ended = false;
  bool paused = false;
  bool dropped = false;

  LocalTcp(const std::string& host, int port, ssh::Sink to) : sink(std::move(to)) {
    try {
      fd = ssh::connect_tcp(host, port, ssh::Patience(std::chrono::seconds(5), Cancel())).fd;
    } catch (const Error& error) {
      refusal = error.reason();
      output_ended = true;
    }
  }
  short events() const {
    return static_cast<short>((paused || output_ended ? 0 : POLLIN) | (pending.empty() ? 0 : POLLOUT));
  }
  void serve(short revents) {
    if ((revents & POLLOUT) != 0) {
      const ssize_t count = ::send(fd.get(), pending.data(), pending.size(), MSG_NOSIGNAL);
      pending.erase(0, count > 0 ? static_cast<std::size_t>(count) : pending.size());
    }
    if (pending.empty() && input_closed) {
      ::shutdown(fd.get(), SHUT_WR);
    }
    if (paused || output_ended || (revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
      return;
    }
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    output_ended = count <= 0 && errno != EAGAIN;
    if (count > 0) {
      sink(ssh::Stream::out, {buffer.data(), static_cast<std::size_t>(count)});
    }
  }
};

class LocalTcpChannel : public ssh::Channel {
 public:
  explicit LocalTcpChannel(std::shared_ptr<LocalTcp> tcp) : tcp_(std::move(tcp)) {}
  ~LocalTcpChannel() override {
    tcp_->dropped = true;
    tcp_->fd.reset();
  }
  LocalTcpChannel(const LocalTcpChannel&) = delete;
  LocalTcpChannel& operator=(const LocalTcpChannel&) = delete;

  std::size_t writable() const override {
    return tcp_->fd && !tcp_->input_closed ? 65536 - std::min<std::size_t>(65536, tcp_->pending.size()) : 0;
  }
  void write(std::string_view data) override { tcp_->pending += data; }
  void close_input() override {
    tcp_->input_closed = true;
    tcp_->serve(0);
  }
  void pause(bool paused) override { tcp_->paused = paused; }
  bool finished() const override { return tcp_->output_ended && (tcp_->input_closed || !tcp_->fd); }
  std::optional<ExitStatus> status() const override { return std::nullopt; }
  std::string refusal() const override { return tcp_->refusal; }
  bool output_ended() const override { return tcp_->output_ended; }

 private:
  std::shared_ptr<LocalTcp> tcp_;
};

class LocalConnection : public ssh::Connection {
 public:
  LocalConnection(std::shared_ptr<State> state, fs::path home)
      : state_(std::move(state)), home_(std::move(home)) {}

  std::unique_ptr<ssh::Channel> open(const std::string& command, ssh::Sink sink) override {
    check();
    std::erase_if(channels_, [](const auto& one) { return one->dropped || one->done(); });
    int most = 0;
    std::map<std::string, std::string> variables;
    {
      const std::scoped_lock lock(state_->mutex);
      most = state_->faults.max_channels;
      variables = state_->variables;
    }
    if (static_cast<int>(channels_.size()) >= most) {
      throw ssh::TooManyChannels();
    }
    const auto [fault, bytes] = state_->next_command();
    if (fault == State::Fault::before) {
      die();
    }
    SubprocessSpec spec;
    // The simulated shell is also used in place of the server's /bin/sh.
    const std::string shell = (state_->folder.path() / "bin/sh").string();
    const std::string hang = shell_quote((state_->folder.path() / "bin/hang").string());
    spec.argv = {shell, "-c",
                 "while [ -e " + hang + " ]; do sleep 0.05; done; " +
                     replace_all(command, "exec /bin/sh -c ", "exec " + shell_quote(shell) + " -c ")};
    spec.directory = home_;
    spec.set_env = std::move(variables);
    spec.set_env.insert({{"HOME", home_.string()},
                         {"PATH", state_->path()},
                         {"PWD", home_.string()},
                         {"REMOTE_LEASES", home_.string()}});
    spec.pipe_stdin = spec.pipe_stdout = spec.pipe_stderr = true;
    spec.new_session = true;
    auto pipes = std::make_shared<Pipes>(spec);
    pipes->sink = std::move(sink);
    pipes->fault = fault;
    pipes->cut_bytes = bytes;
    channels_.push_back(pipes);
    return std::make_unique<LocalChannel>(pipes, state_);
  }

  std::unique_ptr<ssh::Channel> open_tcp(const std::string& host, int port, ssh::Sink sink) override {
    check();
    tcp_.push_back(std::make_shared<LocalTcp>(host, port, std::move(sink)));
    return std::make_unique<LocalTcpChannel>(tcp_.back());
  }

  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    check();
    std::erase_if(tcp_, [](const auto& one) { return one->dropped; });
    std::erase_if(channels_, [](const auto& one) { return one->dropped || one->done(); });
    std::vector<pollfd> fds;
    std::vector<std::pair<std::shared_ptr<Pipes>, int>> owners;  // the channel and the index of its fd
    bool only_exit = false;
    for (const auto& pipes : channels_) {
      const auto add = [&](const UniqueFd& fd, int which, short events) {
        if (fd) {
          fds.push_back({fd.get(), events, 0});
          owners.emplace_back(pipes, which);
        }
      };
      if (!pipes->paused) {
        add(pipes->process.stdout_fd, 1, POLLIN);
        add(pipes->process.stderr_fd, 2, POLLIN);
      }
      if (!pipes->pending.empty()) {
        add(pipes->process.stdin_fd, 0, POLLOUT);
      }
      only_exit = only_exit || (!pipes->process.stdout_fd && !pipes->process.stderr_fd);
    }
    if (only_exit) {
      timeout = std::min(timeout, std::chrono::milliseconds(2));  // poll() does not report exits
    }
    const std::size_t own = fds.size();
    const auto links = tcp_;
    for (const auto& link : links) {
      fds.push_back({link->events() != 0 ? link->fd.get() : -1, link->events(), 0});
    }
    const std::size_t all = fds.size();
    fds.insert(fds.end(), also.begin(), also.end());
    ::poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
    std::copy(fds.begin() + static_cast<std::ptrdiff_t>(all), fds.end(), also.begin());
    for (std::size_t i = own; i < all; ++i) {
      if (fds[i].revents != 0 && !links[i - own]->dropped) {
        links[i - own]->serve(fds[i].revents);
      }
    }
    for (std::size_t i = 0; i < own; ++i) {
      if (fds[i].revents != 0 && !owners[i].first->dropped) {
        serve(*owners[i].first, owners[i].second);
      }
    }
    for (const auto& pipes : std::vector(channels_)) {
      if (!pipes->dropped && !pipes->process.stdout_fd && !pipes->process.stderr_fd && !pipes->status) {
        const std::optional<ExitStatus> status = pipes->process.poll();
        if (status && pipes->fault == State::Fault::after) {
          die();
        }
        pipes->status = status;
      }
    }
  }

  bool idle() noexcept override {
    std::erase_if(channels_, [](const auto& one) { return one->done(); });
    return channels_.empty() && !dead_;
  }
  std::string peer_address() const override { return "127.0.0.1"; }

 private:
  void check() const {
    if (dead_) {
      throw dead_link(state_->loses_packets());
    }
  }
  [[noreturn]] void die() {
    dead_ = true;
    throw dead_link(state_->loses_packets());
  }

  void serve(Pipes& pipes, int which) {
    if (which == 0) {
      const ssize_t count = ::write(pipes.process.stdin_fd.get(), pipes.pending.data(), pipes.pending.size());
      if (count > 0) {
        pipes.pending.erase(0, static_cast<std::size_t>(count));
      } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
        pipes.pending.clear();  // the command no longer reads
        pipes.process.stdin_fd.reset();
      }
      if (pipes.pending.empty() && pipes.input_closed) {
        pipes.process.stdin_fd.reset();
      }
      return;
    }
    UniqueFd& fd = which == 1 ? pipes.process.stdout_fd : pipes.process.stderr_fd;
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (count <= 0) {
      fd.reset();
      return;
    }
    std::string_view data(buffer.data(), static_cast<std::size_t>(count));
    if (pipes.fault == State::Fault::after) {
      return;
    }
    const bool cut = pipes.fault == State::Fault::cut && data.size() >= pipes.cut_bytes;
    if (cut) {
      data = data.substr(0, pipes.cut_bytes);
    }
    if (pipes.fault == State::Fault::cut) {
      pipes.cut_bytes -= data.size();
    }
    if (!data.empty()) {
      pipes.sink(which == 1 ? ssh::Stream::out : ssh::Stream::err, data);
    }
    if (cut) {
      die();
    }
  }

  std::shared_ptr<State> state_;
  fs::path home_;
  std::vector<std::shared_ptr<Pipes>> channels_;
  std::vector<std::shared_ptr<LocalTcp>> tcp_;
  bool dead_ = false;
};

class SharedConnector : public ssh::Connector {
 public:
  explicit SharedConnector(std::shared_ptr<LocalServers> servers) : servers_(std::move(servers)) {}
  std::unique_ptr<ssh::Connection> connect(const config::Server& server, const Cancel& cancel,
                                           ssh::ConnectLimit limit) override {
    return servers_->connect(server, cancel, limit);
  }
  std::unique_ptr<ssh::Connection> connect_with_key(const config::Server& server, const fs::path& key,
                                                    const Cancel& cancel) override {
    return servers_->connect_with_key(server, key, cancel);
  }

 private:
  std::shared_ptr<LocalServers> servers_;
};

}  // namespace

std::string to_string(ServerShell shell) {
  switch (shell) {
    case ServerShell::dash:
      return "dash";
    case ServerShell::bash:
      return "bash";
    case ServerShell::busybox:
      break;
  }
  return "busybox";
}

LocalServers::LocalServers(ServerShell shell) : state_(std::make_shared<State>()) {
  state_->shell = shell;
  std::signal(SIGPIPE, SIG_IGN);      // writing to an exited command must give EPIPE, not a signal
  for (int fd = 3; fd < 256; ++fd) {  // close files inherited from the test runner
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) {
      ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    }
  }
  make_folders(bin());
  const auto program = find_program(to_string(shell));
  if (!program) {
    throw Error("cannot make a local server", "no " + to_string(shell) + " here");
  }
  fs::create_symlink(*program, bin() / "sh");
  if (shell == ServerShell::busybox) {
    SubprocessSpec spec;
    spec.argv = {program->string(), "--list"};
    for (const std::string& applet : split_words(run_subprocess(spec).out)) {
      if (applet != "sh" && applet != "busybox") {
        fs::create_symlink(*program, bin() / applet);
      }
    }
  }
}

LocalServers::~LocalServers() {
  // Finds processes by HOME, a folder that nothing else uses. Repeats, because a process may be forking.
  for (int round = 0; round < 100; ++round) {
    const std::vector<int> pids = processes();
    if (pids.empty()) {
      break;
    }
    for (const int pid : pids) {
      ::kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // poll interval
  }
}

std::unique_ptr<ssh::Connection> LocalServers::connect(const std::string& name) {
  {
    const std::scoped_lock lock(state_->mutex);
    const std::vector<std::string>& out_of_reach = state_->faults.unreachable;
    if (++state_->connects == state_->faults.connect ||
        std::find(out_of_reach.begin(), out_of_reach.end(), name) != out_of_reach.end()) {
      throw ssh::Unreachable("cannot connect", "injected fault");
    }
  }
  return std::make_unique<LocalConnection>(state_, home(name));
}

std::unique_ptr<ssh::Connection> LocalServers::connect(const config::Server& server, const Cancel& cancel,
                                                       ssh::ConnectLimit /*limit*/) {
  cancel.check();
  return connect(server.name);
}

std::unique_ptr<ssh::Connection> LocalServers::connect_with_key(const config::Server& server,
                                                                const fs::path& key, const Cancel& cancel) {
  const std::string known = read_file_if_there(home(server.name) / ".ssh/authorized_keys").value_or("");
  if (!fs::exists(key) || known.find(read_file(key.string() + ".pub")) == std::string::npos) {
    throw Error("cannot log in", "the server does not take this key");
  }
  return connect(server, cancel);
}

fs::path LocalServers::home(const std::string& name) {
  const fs::path path = state_->folder.path() / "home" / name;
  make_folders(path);
  return path;
}

fs::path LocalServers::bin() const {
  return state_->folder.path() / "bin";
}

void LocalServers::add_program(const std::string& name, const std::string& body) {
  const fs::path file = bin() / name;
  fs::remove(file);
  std::ofstream(file) << "#!/bin/sh\n" << body;
  fs::permissions(file, fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
}

void LocalServers::set_variable(const std::string& name, const std::string& value) {
  const std::scoped_lock lock(state_->mutex);
  state_->variables[name] = value;
}

void LocalServers::add_nvidia_smi(const fs::path& folder, const fs::path& log) {
  add_program("nvidia-smi", "FAKE_GPUS='" + folder.string() + "' FAKE_GPUS_LOG='" + log.string() +
                                "'\nexport FAKE_GPUS FAKE_GPUS_LOG\nexec sh '" + source_folder +
                                "/tests/data/gpus/nvidia-smi.sh' \"$@\"\n");
}

void LocalServers::add_gpus(int count) {
  const fs::path folder = state_->folder.path() / "gpus";
  fs::create_directories(folder);
  std::ofstream file(folder / "gpus.csv");
  file << "index, uuid, name\n";
  for (int i = 0; i < count; ++i) {
    file << i << ", GPU-" << i << ", A\n";
  }
  std::ofstream(folder / "apps.csv").flush();  // no process uses the GPUs
  add_nvidia_smi(folder);
}

void LocalServers::set_faults(const Faults& faults) {
  const std::scoped_lock lock(state_->mutex);
  state_->faults = faults;
}

int LocalServers::commands() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->commands;
}

std::vector<int> LocalServers::processes() const {
  return processes_with_variable_like("HOME=" + (state_->folder.path() / "home").string() + "/");
}

std::ptrdiff_t LocalServers::count_running(const std::string& program) const {
  const std::vector<int> pids = processes();
  return std::count_if(pids.begin(), pids.end(),
                       [&](int pid) { return command_line(pid).starts_with(program + '\0'); });
}

std::unique_ptr<ssh::Connector> share(std::shared_ptr<LocalServers> servers) {
  return std::make_unique<SharedConnector>(std::move(servers));
}

}  // namespace remote::test
