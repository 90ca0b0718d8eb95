#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/waiting.hpp"

// Real processes for tests.

namespace remote::agent::test {

[[noreturn]] inline void sleep_long() {
  ::sleep(1000);  // until it is killed
  ::_exit(0);
}

// Requires root: becomes this user permanently.
inline void become(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
      ::setresuid(user, user, user) != 0) {
    ::_exit(99);
  }
  ::prctl(PR_SET_DUMPABLE, 1);  // as after execve()
}

// A child process that runs a function in its own session. It is killed in the end, even if the test dies.
class Started {
 public:
  template <typename Function>
  explicit Started(const Function& function) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      function();
      ::_exit(0);
    }
  }
  Started(Started&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Started& operator=(Started&&) = delete;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }
  ProcessId id(const Host& host) const { return read_process(host, pid_).value().id; }
  bool lives() const { return is_alive(Host{}, id(Host{})); }
  // Its exit status, or 128+N for signal N.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
};

// Runs `sleep` with this environment, as this user. Returns once it runs.
inline Started run_sleep(std::vector<std::string> environment, uid_t user = ::geteuid(),
                         const std::string& program = "/bin/sleep") {
  Started child([&] {
    if (user != ::geteuid()) {
      become(user);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    std::string name = program;
    std::string time = "1000";
    std::vector<char*> argv{name.data(), time.data(), nullptr};
    std::vector<char*> variables;
    for (std::string& variable : environment) {
      variables.push_back(variable.data());
    }
    variables.push_back(nullptr);
    ::execve(name.c_str(), argv.data(), variables.data());
    ::_exit(98);
  });
  const std::string short_name = program.substr(program.rfind('/') + 1);
  eventually([&] {
    const auto process = read_process(Host{}, child.pid());
    return process && process->name == short_name && process->state == 'S';
  });
  return child;
}

}  // namespace remote::agent::test
