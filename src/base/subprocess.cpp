#include "base/subprocess.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"

extern char** environ;

namespace remote {
namespace {

std::vector<std::string> child_environment(const std::map<std::string, std::string>& set,
                                           const std::string& unset) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool left_out = !unset.empty() && text.starts_with(unset);
    if (!left_out && !set.contains(std::string(text.substr(0, text.find('='))))) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : set) {
    result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

// The actions of posix_spawn(3) in the child before it starts the program.
struct SpawnPlan {
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void connect(const UniqueFd& ours, int number) {
    if (ours) {
      ::posix_spawn_file_actions_adddup2(&actions, ours.get(), number);
    }
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

void set_signals(posix_spawnattr_t& attributes, bool new_session) {
  // Reset all signals, because those ignored here would stay ignored in the child and its children.
  sigset_t signals;
  sigfillset(&signals);
  sigdelset(&signals, SIGKILL);
  sigdelset(&signals, SIGSTOP);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  const int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (new_session ? POSIX_SPAWN_SETSID : 0);
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
}

// A shell script may contain a password.
std::string loggable(const std::vector<std::string>& argv) {
  std::string text;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const bool script = i > 1 && argv[i - 1] == "-c" && argv[i - 2] == "sh";
    text += (i == 0 ? "" : " ") + (script ? "…" : argv[i]);
  }
  return text;
}

}  // namespace

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? std::optional<std::filesystem::path>(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  // sshd and other programs are in sbin folders, which are missing in an ordinary user's PATH.
  const std::string folders = std::string(path != nullptr ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin";
  for (const std::string& folder : split(folders, ':')) {
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !is_folder(candidate)) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::string ExecResult::describe() const {
  const std::string said = last_lines(trim(err), 3);
  return status.describe() + (said.empty() ? "" : ": " + said);
}

Subprocess::Subprocess(const SubprocessSpec& spec) {
  const auto program = find_program(spec.argv.at(0));
  if (!program) {
    throw Error("cannot run " + spec.argv[0], "the program was not found on this machine",
                "install it, or add its folder to PATH");
  }
  std::vector<std::string> arguments = spec.argv;
  std::vector<std::string> environment = child_environment(spec.set_env, spec.unset_env);
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> env = pointers(environment);

  SpawnPlan plan;
  set_signals(plan.attributes, spec.new_session);
  if (spec.directory) {
    ::posix_spawn_file_actions_addchdir_np(&plan.actions, spec.directory->c_str());
  }
  Pipe in = spec.pipe_stdin ? make_pipe() : Pipe();
  Pipe out = spec.pipe_stdout ? make_pipe() : Pipe();
  Pipe err = spec.pipe_stderr ? make_pipe() : Pipe();
  if (!in.read) {
    ::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  }
  plan.connect(in.read, 0);
  plan.connect(out.write, 1);
  plan.connect(err.write, 2);
  int next = 3;
  for (const auto& [ours, theirs] : spec.pass_fds) {
    ::posix_spawn_file_actions_adddup2(&plan.actions, ours, theirs);
    next = std::max(next, theirs + 1);
  }
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
  // Close descriptors that another thread or a library has opened without close-on-exec, such as those of a
  // connection.
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, next);
#endif
#endif
  const int error =
      ::posix_spawn(&pid_, program->c_str(), &plan.actions, &plan.attributes, argv.data(), env.data());
  if (error != 0) {
    pid_ = -1;
    throw Error("cannot start " + spec.argv[0], std::generic_category().message(error),
                error == EAGAIN || error == ENOMEM ? "this machine cannot start another process"
                                                   : "do you have permission to run it?");
  }
  if (logs(LogLevel::debug)) {
    log_debug("", "started {} (pid {})", loggable(spec.argv), pid_);
  }
  stdin_fd = std::move(in.write);
  stdout_fd = std::move(out.read);
  stderr_fd = std::move(err.read);
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : stdin_fd(std::move(other.stdin_fd)),
      stdout_fd(std::move(other.stdout_fd)),
      stderr_fd(std::move(other.stderr_fd)),
      pid_(std::exchange(other.pid_, -1)),
      status_(other.status_) {}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !status_) {
    stdin_fd.reset();
    stdout_fd.reset();
    stderr_fd.reset();
    if (!poll()) {
      kill(SIGKILL);
      wait();
    }
  }
}

void Subprocess::kill(int signal) const {
  if (pid_ > 0 && !status_) {
    ::kill(::getpgid(pid_) == pid_ ? -pid_ : pid_,
           signal);  // the whole process group if it has a session of its own
  }
}

ExitStatus Subprocess::wait() {
  if (!status_) {
    int status = 0;
    const pid_t ended = uninterrupted([&] { return ::waitpid(pid_, &status, 0); });
    status_ = ended == pid_ ? ExitStatus::from_wait(status) : ExitStatus::exited(255);
  }
  return *status_;
}

std::optional<ExitStatus> Subprocess::poll() {
  if (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = ExitStatus::from_wait(status);
    }
  }
  return status_;
}

pid_t Subprocess::release() {
  return std::exchange(pid_, -1);
}

ExecResult run_subprocess(SubprocessSpec spec, std::string_view input, const Cancel& cancel) {
  spec.pipe_stdin = !input.empty();
  spec.pipe_stdout = true;
  spec.pipe_stderr = true;
  const Stopwatch watch;
  Subprocess child(spec);
  ExecResult result;
  if (child.stdin_fd) {
    ::fcntl(child.stdin_fd.get(), F_SETFL, O_NONBLOCK);
  }
  bool asked_to_end = false;
  while (child.stdout_fd || child.stderr_fd || child.stdin_fd) {
    std::array<pollfd, 4> fds{{{child.stdout_fd.get(), POLLIN, 0},
                               {child.stderr_fd.get(), POLLIN, 0},
                               {child.stdin_fd.get(), POLLOUT, 0},
                               {asked_to_end ? -1 : cancel.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      throw Error("cannot wait for " + spec.argv[0], std::generic_category().message(errno))
          .mended_by(Remedy::report_bug);
    }
    if (!asked_to_end && cancel.cancelled()) {
      child.kill(SIGTERM);
      asked_to_end = true;
    }
    const auto drain = [](pollfd& slot, UniqueFd& fd, std::string& text) {
      if (slot.fd < 0 || slot.revents == 0) {
        return;
      }
      char buffer[65536];
      const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
      if (count > 0) {
        text.append(buffer, static_cast<std::size_t>(count));
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
        fd.reset();
      }
    };
    drain(fds[0], child.stdout_fd, result.out);
    drain(fds[1], child.stderr_fd, result.err);
    if (fds[2].fd >= 0 && fds[2].revents != 0) {
      const ssize_t count = ::write(child.stdin_fd.get(), input.data(), input.size());
      if (count > 0) {
        input.remove_prefix(static_cast<std::size_t>(count));
      }
      if (input.empty() || (count < 0 && errno != EINTR && errno != EAGAIN)) {
        child.stdin_fd.reset();
      }
    }
  }
  result.status = child.wait();
  log_debug("", "{} (pid {}): {} after {}", spec.argv[0], child.pid(), result.status.describe(),
            watch.text());
  cancel.check();
  return result;
}

}  // namespace remote
