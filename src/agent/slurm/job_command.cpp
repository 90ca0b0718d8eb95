#include "agent/slurm/job_command.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <unistd.h>

#include "agent/container/boxes.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/mpi/child.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr int cannot_run_command = 127;

volatile std::sig_atomic_t end_signal = 0;

void note_signal(int signal) {
  if (end_signal == 0) {
    end_signal = signal;
  }
}

void do_nothing(int /*signal*/) {}

void print_failure(const std::string& what, int error) {
  print_error(text::format("{}: {}", what, ::strerror(error)));
}

void redirect_or_exit(int fd, const std::string& file, int flags) {
  const int opened = ::open(file.c_str(), flags | O_CLOEXEC, 0600);
  if (opened < 0 || ::dup2(opened, fd) < 0) {
    print_failure("cannot open " + file, errno);
    _exit(cannot_run_command);
  }
}

}  // namespace

void survive_signals() {
  // Uses a handler, because programs would inherit SIG_IGN.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::signal(signal, note_signal);
  }
  for (const int signal : {SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM}) {
    std::signal(signal, do_nothing);
  }
  std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, exit statuses are lost
}

int find_end_signal() {
  return end_signal;
}

namespace {

// Runs `become` in a child; it must not return. If `out` is not empty, the child's outputs are appended to
// these files.
wire::ProcessEnd run_child(const Host& host, const std::string& out, const std::string& err,
                           const std::function<void()>& become) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    redirect_or_exit(STDIN_FILENO, "/dev/null", O_RDONLY);
    if (!out.empty()) {
      redirect_or_exit(STDOUT_FILENO, out, O_WRONLY | O_APPEND | O_CREAT);
      redirect_or_exit(STDERR_FILENO, err, O_WRONLY | O_APPEND | O_CREAT);
    }
    become();
    _exit(cannot_run_command);
  }
  if (pid < 0) {
    const std::string limit = find_process_limit(host);
    print_error(text::format("no process can be started on {}: {}", host.variable("SLURMD_NODENAME"), limit));
    return wire::ProcessEnd::exited(cannot_run_command);
  }
  return wait_for_child(pid);
}

}  // namespace

wire::ProcessEnd run_in_foreground(const Host& host, std::vector<std::string> argv) {
  return run_child(host, "", "", [&] {
    ::execvp(argv.front().c_str(), pointers_to(argv).data());
    print_failure(text::format("cannot start {} on {}", argv.front(), host.variable("SLURMD_NODENAME")),
                  errno);
  });
}

wire::ProcessEnd run_job_command(const Host& host, const Path& folder, const RankFiles& files) {
  const bool is_in_box = exists("container");
  if (is_in_box) {
    write_job_file(files.note, "", O_TRUNC);
  }
  const wire::ProcessEnd end = run_child(host, files.out, files.err, [&] { exec_slurm_job(folder, files); });
  if (!is_in_box) {
    return end;
  }
  const wire::ProcessEnd inside = read_end_in_box(end, files.note);
  ::unlink(files.note.c_str());
  ::unlink((files.note + ".variables").c_str());
  return inside;
}

}  // namespace remote::agent
