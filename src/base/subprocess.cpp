#include "base/subprocess.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/strings.hpp"

extern char** environ;

namespace remote {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
#ifdef __linux__
    // Close-on-exec from the start: a fork in another thread must not carry these ends away.
    const int made = ::pipe2(fds.data(), O_CLOEXEC);
#else
    const int made = ::pipe(fds.data());
#endif
    if (made != 0) {
      throw Error("cannot make a pipe", std::strerror(errno));
    }
    read.reset(fds[0]);
    write.reset(fds[1]);
#ifndef __linux__
    ::fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    ::fcntl(fds[1], F_SETFD, FD_CLOEXEC);
#endif
  }
  UniqueFd read;
  UniqueFd write;
};

std::vector<std::string> child_environment(const std::map<std::string, std::string>& set) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!set.contains(std::string(text.substr(0, text.find('='))))) {
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

// What the child does between fork and exec: async-signal-safe calls only, because other threads may hold
// locks.
struct ChildPlan {
  const char* program = nullptr;
  char** argv = nullptr;
  char** env = nullptr;
  const char* directory = nullptr;
  int in = -1;
  int out = -1;
  int err = -1;
  int report = -1;
  bool new_session = false;
  const std::vector<std::pair<int, int>>* pass = nullptr;
};

[[noreturn]] void run_child(const ChildPlan& plan) {
  const auto fail = [&] {
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(plan.report, &error, sizeof error);
    ::_exit(127);
  };
  // All of them: what is ignored here would stay ignored in the child, and in its children.
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);  // refused for SIGKILL and SIGSTOP
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.new_session) {
    ::setsid();
  }
  if (plan.directory != nullptr && ::chdir(plan.directory) != 0) {
    fail();
  }
  const int in = plan.in >= 0 ? plan.in : ::open("/dev/null", O_RDONLY);
  if (::dup2(in, 0) < 0 || (plan.out >= 0 && ::dup2(plan.out, 1) < 0) ||
      (plan.err >= 0 && ::dup2(plan.err, 2) < 0)) {
    fail();
  }
  for (const auto& [ours, theirs] : *plan.pass) {
    if (ours == theirs) {
      ::fcntl(ours, F_SETFD, 0);
    } else if (::dup2(ours, theirs) < 0) {
      fail();
    }
  }
  ::execve(plan.program, plan.argv, plan.env);
  fail();
  ::_exit(127);
}

}  // namespace

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? std::optional<std::filesystem::path>(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  // sshd and others live in sbin folders that an ordinary user's PATH lacks.
  const std::string folders = std::string(path != nullptr ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin";
  for (const std::string& folder : split(folders, ':')) {
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code ignored;
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate, ignored)) {
      return candidate;
    }
  }
  return std::nullopt;
}

namespace {

// What a shell is given may hold a password.
std::string loggable(const std::vector<std::string>& argv) {
  std::string text;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const bool script = i > 1 && argv[i - 1] == "-c" && argv[i - 2] == "sh";
    text += (i == 0 ? "" : " ") + (script ? "…" : argv[i]);
  }
  return text;
}

}  // namespace

Subprocess::Subprocess(const SubprocessSpec& spec) {
  const auto program = find_program(spec.argv.at(0));
  if (!program) {
    throw Error("cannot run " + spec.argv[0], "the program was not found on this machine",
                "install it, or add its folder to PATH");
  }
  std::vector<std::string> arguments = spec.argv;
  std::vector<std::string> environment = child_environment(spec.set_env);
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> env = pointers(environment);

  std::optional<Pipe> in;
  std::optional<Pipe> out;
  std::optional<Pipe> err;
  Pipe report;
  if (spec.pipe_stdin) {
    in.emplace();
  }
  if (spec.pipe_stdout) {
    out.emplace();
  }
  if (spec.pipe_stderr) {
    err.emplace();
  }
  ChildPlan plan;
  plan.program = program->c_str();
  plan.argv = argv.data();
  plan.env = env.data();
  plan.directory = spec.directory ? spec.directory->c_str() : nullptr;
  plan.in = in ? in->read.get() : -1;
  plan.out = out ? out->write.get() : -1;
  plan.err = err ? err->write.get() : -1;
  plan.report = report.write.get();
  plan.new_session = spec.new_session;
  plan.pass = &spec.pass_fds;

  pid_ = ::fork();
  if (pid_ < 0) {
    throw Error("cannot start " + spec.argv[0], std::strerror(errno));
  }
  if (pid_ == 0) {
    run_child(plan);
  }
  report.write.reset();
  int child_errno = 0;
  ssize_t count = 0;
  do {
    count = ::read(report.read.get(), &child_errno, sizeof child_errno);
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof child_errno)) {
    wait();
    throw Error("cannot start " + spec.argv[0], std::strerror(child_errno));
  }
  if (logs(LogLevel::debug)) {
    log_debug("", "started {} (pid {})", loggable(spec.argv), pid_);
  }
  if (in) {
    stdin_fd = std::move(in->write);
  }
  if (out) {
    stdout_fd = std::move(out->read);
  }
  if (err) {
    stderr_fd = std::move(err->read);
  }
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
    ::kill(pid_, signal);
  }
}

ExitStatus Subprocess::wait() {
  while (!status_) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, 0);
    if (ended == pid_) {
      status_ = ExitStatus::from_wait(status);
    } else if (errno != EINTR) {
      status_ = ExitStatus::exited(255);
    }
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
      throw Error("cannot wait for " + spec.argv[0], std::strerror(errno));
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
