#include "agent/host/run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000));
}

std::string describe_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
             ? text::format("the login's limit of {} processes (ulimit -u) is reached", limit.rlim_cur)
             : "no process can be started";
}

// Starts the program. Returns -1 on failure. Throws CannotStart.
pid_t spawn(const Host& host, const RunRequest& request, int out, int errors) {
  std::string program = request.program.empty() ? request.argv.front() : request.program.string();
  if (program.find('/') == std::string::npos) {
    program = host.find_program(program);
  }
  std::vector<std::string> argv = request.argv;
  std::vector<std::string> environment = request.is_job ? host.list_job_variables() : host.list_variables();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (request.input >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, request.input, 0);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (errors >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, errors, 2);
  } else if (request.with_stderr) {
    ::posix_spawn_file_actions_adddup2(&actions, out, 2);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  if (!request.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, request.folder.c_str());
  }
  if (request.lease >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, request.lease, lease_fd);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = program.empty()
                        ? ENOENT
                        : ::posix_spawn(&pid, program.c_str(), &actions, &attributes,
                                        pointers_to(argv).data(), pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == EAGAIN) {
    throw CannotStart();
  }
  return error == 0 ? pid : -1;
}

// Returns whether the process has exited. Its pid stays reserved until waitpid(), so that its process group
// cannot be a different one when it is killed.
bool reap(pid_t pid, int& status, bool ends_group) {
  if (ends_group) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != pid) {
      return false;
    }
    ::kill(-pid, SIGKILL);
  }
  return ::waitpid(pid, &status, WNOHANG) == pid;
}

// Sends TERM to a process group, and waits until it has no processes.
void end_group(pid_t pid, int& status, std::chrono::milliseconds grace) {
  ::kill(-pid, SIGTERM);
  for (const Clock::time_point end = Clock::now() + grace; Clock::now() < end; ::usleep(10'000)) {
    ::waitpid(pid, &status, WNOHANG);
    if (::kill(-pid, 0) != 0) {
      return;
    }
  }
}

// Reads a piece of a program's output. Closes the descriptor at EOF.
void read_piece(Descriptor& from, const std::function<void(std::string_view)>& take) {
  std::array<char, 16384> buffer{};
  const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
  if (count > 0) {
    take({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || errno != EINTR) {
    from.reset();
  }
}

}  // namespace

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

CannotStart::CannotStart() : std::runtime_error("it cannot start a process there: " + describe_limit()) {}

RunResult run(const Host& host, const RunRequest& request) {
  RunResult result;
  Pipe out = open_pipe();
  Pipe errors = request.on_errors ? open_pipe() : Pipe();
  if (!out || (request.on_errors && !errors)) {
    return result;
  }
  const int errors_end = request.on_errors ? errors.write_end.get() : request.errors;
  const pid_t pid = spawn(host, request, out.write_end.get(), errors_end);
  out.write_end.reset();
  errors.write_end.reset();
  if (pid < 0) {
    return result;
  }
  const auto keep = [&](std::string_view text) {
    result.out += text.substr(0, request.max_output - std::min(request.max_output, result.out.size()));
  };
  const Clock::time_point end = Clock::now() + request.limit;
  int status = 0;
  bool has_ended = false;
  while ((out.read_end || errors.read_end) && !result.timed_out) {
    std::array<pollfd, 2> ready{{{out.read_end.get(), POLLIN, 0}, {errors.read_end.get(), POLLIN, 0}}};
    // A background child may keep the pipes open, so stop reading when the program has exited.
    const bool is_over = has_ended && !request.awaits_children;
    const int wait = is_over ? 0 : std::min(milliseconds_until(end), 100);
    if (::poll(ready.data(), ready.size(), wait) > 0) {
      if (ready[0].revents != 0) {
        read_piece(out.read_end, request.on_output ? request.on_output : keep);
      }
      if (ready[1].revents != 0) {
        read_piece(errors.read_end, request.on_errors);
      }
    } else if (is_over || (has_ended && wait == 0)) {
      break;
    } else if (!has_ended) {
      has_ended = reap(pid, status, request.ends_group);
    }
    result.timed_out = !has_ended && (Clock::now() >= end || host.is_cancelled());
  }
  while (!has_ended && !result.timed_out) {
    has_ended = reap(pid, status, request.ends_group);
    result.timed_out = !has_ended && (Clock::now() >= end || host.is_cancelled());
    if (!has_ended && !result.timed_out) {
      ::usleep(500);
    }
  }
  if (!has_ended && request.grace.count() > 0) {
    end_group(pid, status, request.grace);
  }
  if (!has_ended) {
    ::kill(-pid, SIGKILL);
    // A program that hangs in the kernel does not die, so do not wait long for it.
    for (int i = 0; i < 100 && ::waitpid(pid, &status, WNOHANG) == 0; ++i) {
      ::usleep(1000);
    }
    result.code = 124;
    return result;
  }
  result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace remote::agent
