#include "agent/run/start_run.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/run/exec_run.hpp"
#include "base/format.hpp"
#include "wire/cbor.hpp"

namespace remote::agent {
namespace {

struct Terminal {
  Descriptor ours;
  Descriptor theirs;
  std::string name;
};

Pipe make_pipe() {
  Pipe pipe = open_pipe();
  if (!pipe) {
    throw std::runtime_error("the server has no file descriptor for it");
  }
  return pipe;
}

Terminal open_terminal(const Host& host, const wire::RunTerminal& wanted) {
  Terminal terminal{
      .ours = Descriptor(::open(host.system("/dev/ptmx").c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC)),
      .theirs = {},
      .name = {}};
  int number = -1;
  int locked = 0;
  if (terminal.ours && ::ioctl(terminal.ours.get(), TIOCGPTN, &number) == 0 &&
      ::ioctl(terminal.ours.get(), TIOCSPTLCK, &locked) == 0) {
    constexpr int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
    terminal.name = text::format("/dev/pts/{}", number);
    terminal.theirs = Descriptor(::ioctl(terminal.ours.get(), TIOCGPTPEER, flags));
    if (!terminal.theirs) {  // before Linux 4.13
      terminal.theirs = Descriptor(::open(terminal.name.c_str(), flags));
    }
  }
  if (!terminal.theirs) {
    throw std::runtime_error(std::string("it gives no terminal: ") + std::strerror(errno));
  }
  termios settings{};
  if (::tcgetattr(terminal.theirs.get(), &settings) == 0) {
    settings.c_iflag |= IUTF8;  // so that backspace deletes a whole character
    ::tcsetattr(terminal.theirs.get(), TCSANOW, &settings);
  }
  resize_terminal(terminal.ours.get(), wanted.size);
  return terminal;
}

// The environment for exec_run(): see Host::list_account_variables().
std::vector<std::string> list_variables(const Host& host, const wire::RunRequest& request,
                                        const std::string& terminal) {
  std::vector<std::string> variables = host.list_account_variables();
  if (request.terminal) {
    std::erase_if(variables, [](const std::string& variable) {
      return variable.starts_with("TERM=") || variable.starts_with("SSH_TTY=");
    });
    variables.push_back("TERM=" + request.terminal->type);
    variables.push_back("SSH_TTY=" + terminal);
  }
  return variables;
}

// The code below runs in a child of a multithreaded process, so it may only use system calls.

struct Child {
  int in = -1;
  int out = -1;
  int err = -1;
  int request = -1;
  bool has_terminal = false;
};

[[noreturn]] void execute_run(const Child& child, char** environment) {
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  const bool has_terminal = !child.has_terminal || ::ioctl(child.in, TIOCSCTTY, 0) == 0;
  // All of these descriptors are above 2, because the agent's own 0, 1 and 2 are open.
  const int request =
      ::fcntl(child.request, F_DUPFD, run_request_fd + 1);  // dup2() to the same number would keep FD_CLOEXEC
  if (has_terminal && ::dup2(child.in, 0) == 0 && ::dup2(child.out, 1) == 1 && ::dup2(child.err, 2) == 2 &&
      ::dup2(request, run_request_fd) == run_request_fd) {
    close_descriptors(3, run_request_fd);
    std::array<char*, 4> words{const_cast<char*>("remote-agent"), const_cast<char*>("exec-run"),
                               const_cast<char*>("begin"), nullptr};
    ::execve("/proc/self/exe", words.data(), environment);
  }
  ::_exit(127);
}

void make_nonblocking(const Descriptor& descriptor) {
  if (descriptor) {
    ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
  }
}

}  // namespace

void resize_terminal(int terminal, const TerminalSize& size) {
  winsize window{};
  window.ws_col = static_cast<unsigned short>(size.columns);
  window.ws_row = static_cast<unsigned short>(size.rows);
  ::ioctl(terminal, TIOCSWINSZ, &window);
}

StartedRun start_run(const Host& host, const wire::RunRequest& request) {
  const wire::Bytes bytes = wire::encode(request);
  const Descriptor held = hold_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!held) {
    throw std::runtime_error("the server has no memory for it");
  }
  StartedRun run;
  Terminal terminal;
  Pipe in;
  Pipe out;
  Pipe err;
  Child child{.request = held.get(), .has_terminal = request.terminal.has_value()};
  if (request.terminal) {
    terminal = open_terminal(host, *request.terminal);
    child.in = child.out = child.err = terminal.theirs.get();
  } else {
    if (request.has_input) {
      in = make_pipe();
    } else {
      in.read_end = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    out = make_pipe();
    err = make_pipe();
    child.in = in.read_end.get();
    child.out = out.write_end.get();
    child.err = err.write_end.get();
  }
  std::vector<std::string> variables = list_variables(host, request, terminal.name);
  std::vector<char*> environment = pointers_to(variables);
  run.pid = ::fork();
  if (run.pid == 0) {
    execute_run(child, environment.data());
  }
  if (run.pid < 0) {
    throw CannotStart();
  }
  run.in = request.terminal ? Descriptor(::fcntl(terminal.ours.get(), F_DUPFD_CLOEXEC, 3))
                            : std::move(in.write_end);
  run.out = request.terminal ? std::move(terminal.ours) : std::move(out.read_end);
  run.err = std::move(err.read_end);
  make_nonblocking(run.in);
  make_nonblocking(run.out);
  make_nonblocking(run.err);
  return run;
}

}  // namespace remote::agent
