#include "agent/job/guard.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/boxes.hpp"
#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/exec_job.hpp"
#include "agent/job/find_guards.hpp"
#include "agent/job/init_file.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/lease_guard.hpp"
#include "agent/job/open_ranks.hpp"
#include "agent/job/second_place.hpp"
#include "agent/lease/lease_files.hpp"
#include "agent/tree/trees.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int report_fd = STDERR_FILENO + 1;
constexpr int cannot_run = 127;
constexpr const char* here = ".";  // the job's folder
// The size of `.note`, which reserves disk space for a later record.
constexpr std::size_t note_space = 200;
constexpr int end_tries = 600;  // one per second

// Signals that users and shells send to process groups. A guard ignores them; jobs start with the default
// handlers.
constexpr std::array survived{SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM};

bool is_fifo(const Path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

void append_note(const Path& job_folder, const std::string& line) {
  write_job_file(job_folder / "job.err", "remote: " + line + "\n", O_APPEND);
}

void redirect(int fd, const char* file, int flags) {
  const int opened = ::open(file, flags | O_CLOEXEC, 0600);
  if (opened >= 0) {
    ::dup2(opened, fd);
  }
}

class Guard {
 public:
  Guard(const Host& host, const GuardOrder& order, const std::string& id, int report)
      : host_(host), order_(order), report_(report), job_{.id = id, .folder = order.folder.jobs / id} {}

  // Returns when the job is over.
  void run() {
    prepare();
    if (!become_supervisor()) {
      return;
    }
    has_attempts_ = exists("again");
    if (has_attempts_) {
      open_attempts();
    }
    // From here on, orphans of the job become children of this process. The lease guard must be started
    // earlier.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    bool has_next = !exists("spare") || await_replacement();
    if (!has_next) {
      end_ = {.how = wire::ProcessEnd::exited(0), .at = read_wall_clock(), .by = "supervisor"};
    }
    kills_before_ = order_.count_oom_kills(host_);
    while (has_next) {
      const pid_t main = start_job();
      end_ = wait_for_end(main);
      has_next = has_attempts_ ? await_next_attempt() : prepare_retry();
    }
    finish();
  }

 private:
  void report(const std::string& text) {
    if (report_ >= 0) {
      write_whole(report_, job_.id + " " + text + "\n");
      ::close(std::exchange(report_, -1));
    }
  }

  void prepare() {
    ::setsid();
    ::prctl(PR_SET_NAME, guard_name);
    for (const int signal : survived) {
      std::signal(signal, SIG_IGN);
    }
    std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, exit statuses are lost
    ::umask(077);
    report_ = ::dup3(::fcntl(report_, F_DUPFD_CLOEXEC, report_fd + 1), report_fd, O_CLOEXEC);
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect(STDOUT_FILENO, "/dev/null", O_WRONLY);
    redirect(STDERR_FILENO, "/dev/null", O_WRONLY);
    const bool has_lease = exists(job_.folder / "devices");
    close_descriptors(report_fd + 1, has_lease ? lease_fd : -1);
  }

  // Creating the file `supervisor` is the only lock between this start, a repeated start, and claim().
  bool become_supervisor() {
    if (::chdir(job_.folder.c_str()) != 0) {
      report("! its folder is gone");
      return false;
    }
    const auto self = read_process(host_, ::getpid());
    const std::string start = self ? std::to_string(self->id.start) : "0";
    const std::string session = self && self->session == ::getpid() ? std::to_string(::getpid()) : "-";
    const std::string line = text::format("{} {} {} {}\n", ::getpid(), start, read_boot_id(host_), session);
    if (!create_file(job_.folder / "supervisor", line)) {
      struct stat info {};
      const bool is_empty = ::lstat("supervisor", &info) == 0 && info.st_size == 0;
      report(is_empty ? "! its supervisor could not write in its folder: is the disk full?"
                      : "! another process has already started or stopped it");
      return false;
    }
    reserve_journal(here);
    // Readers of this FIFO receive EOF when this process exits, and a line when an attempt ends.
    if (::mkfifo(".alive", 0600) == 0 || is_fifo(".alive")) {
      alive_ = ::open(".alive", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    }
    append_to_journal(here, wire::JobStarted{order_.started});
    return true;
  }

  void reserve_space(const char* file, std::size_t size) {
    write_job_file(file, std::string(size, ' ') + "\n", O_TRUNC);
  }

  // Forks the job, which records its pid before it runs the command. Returns the pid, or -1.
  pid_t start_job() {
    reserve_space(".note", note_space);  // for the first process of a container
    std::array<int, 2> ready{-1, -1};
    [[maybe_unused]] const int made = ::pipe2(ready.data(), O_CLOEXEC);
    const pid_t pid = ::fork();
    if (pid == 0) {
      become_job(ready[1]);
    }
    ::close(ready[1]);
    if (pid > 0) {
      char byte = 0;
      [[maybe_unused]] const ssize_t count =
          ::read(ready[0], &byte, 1);  // returns when the job is recorded or has exited
      report(std::to_string(pid));
    } else {
      report("! no process can be started: " + find_process_limit(host_));
      append_note(job_.folder, "the job was not started, because no process can be started");
    }
    ::close(ready[0]);
    return pid;
  }

  [[noreturn]] void become_job(int ready) {
    for (int signal = 1; signal < NSIG; ++signal) {
      std::signal(signal, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int err = ::open("job.err", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (err < 0 || ::dup2(err, STDERR_FILENO) < 0) {
      _exit(cannot_run);
    }
    const auto self = read_process(host_, ::getpid());
    // The file is not named job.pid, because labml_remote's watcher reads every file of that name.
    const std::string record = text::format("{} {}\n", ::getpid(), self ? self->id.start : 0);
    if (!write_job_file("pid", record, O_TRUNC)) {
      write_whole(STDERR_FILENO, "remote: cannot write the job's folder: is the disk full?\n");
      _exit(cannot_run);
    }
    write_whole(ready, ".");
    const int out = ::open("job.out", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0) {
      _exit(cannot_run);
    }
    ::umask(order_.mask);
    ::setsid();  // the guard must survive if the job kills its process group
    ::setenv("REMOTE_JOB_ID", job_.id.c_str(), 1);
    if (retries_ > 0) {
      ::setenv("SWEEP_RETRY", std::to_string(retries_).c_str(), 1);
    }
    // It may wait before it executes the command.
    close_descriptors(STDERR_FILENO + 1, exists("devices") ? lease_fd : -1);
    exec_job(job_.folder);
  }

  // Waits for the main process. Meanwhile, reaps orphans of the job.
  wire::JobEnd wait_for_end(pid_t main) {
    wire::JobEnd end{.how = wire::ProcessEnd::exited(cannot_run), .at = {}, .by = "supervisor"};
    siginfo_t info{};
    while (main > 0 && info.si_pid != main) {
      if (::waitid(P_ALL, 0, &info, WEXITED) != 0 && errno != EINTR) {
        break;
      }
    }
    end.at = read_wall_clock();
    if (main > 0 && info.si_pid == main) {
      end.how = info.si_code == CLD_EXITED ? wire::ProcessEnd::exited(info.si_status)
                                           : wire::ProcessEnd::signalled(info.si_status);
    }
    if (exists("container")) {
      end.how = read_end_in_box(end.how, job_.folder / ".note");
    }
    // Open MPI 5 exits with 0 even if it has lost a daemon and the daemon's ranks.
    if (has_open_rank(job_.folder) && end.how.succeeded()) {
      end.how = wire::ProcessEnd::exited(1);
      append_note(job_.folder, "mpirun has ended before its ranks");
    }
    if (!end.how.succeeded() && has_open_rank(job_.folder)) {
      if (const auto code = close_open_ranks(host_, job_.folder, *end.at)) {
        end.how = wire::ProcessEnd::exited(*code);
      }
    }
    const auto kills = order_.count_oom_kills(host_);
    if (!end.how.succeeded() && kills && kills_before_ && *kills > *kills_before_) {
      append_to_journal(here, wire::OutOfMemory{*end.at});
    }
    kills_before_ = kills;
    if (!end.how.succeeded() && !was_stopped()) {
      if (const FolderFlaw flaw = order_.find_full_disk(here); flaw != FolderFlaw::none) {
        append_safely(host_, here, job_.id, wire::DiskRefused{*end.at, flaw});
      }
    }
    return end;
  }

  // ---- Attempts of a launch with restarts (docs/resilience.md)

  // Opens the FIFO for the lifeline's orders, and starts the lease guard.
  void open_attempts() {
    const std::vector<std::string> words = read_job_words("again");
    const auto seconds = words.empty() ? std::nullopt : parse_number<int>(words[0]);
    if (seconds && words.size() > 1 && ::mkfifo(".next", 0600) == 0) {
      next_ = ::open(".next", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      start_lease_guard(host_, order_.folder, job_.id, *seconds, words[1]);
    }
  }

  // Waits until this spare is needed. Returns false if the launch ends before that.
  bool await_replacement() {
    report("spare");
    return next_ >= 0 && await_order();
  }

  // Waits after an attempt for the decision whether another one follows. The result is written only then.
  bool await_next_attempt() {
    if (was_stopped() || next_ < 0 || !append_to_journal(here, wire::AttemptEnded{attempt_, end_})) {
      return false;
    }
    if (alive_ >= 0) {
      write_whole(alive_, "ended\n");  // notifies the lifeline
    }
    if (!await_order()) {
      return false;
    }
    // The next attempt must not find the container and the failure records of this one.
    remove_container();
    remove_failures();
    record_restart();
    return true;
  }

  bool was_stopped() const { return read_history(host_, here, job_.id).stop.has_value(); }

  static void record_restart() {
    append_to_journal(here, wire::JobRestarted{read_wall_clock()});
    reserve_journal(here);
  }

  void remove_failures() {
    for (const std::string& name : list_names("failures")) {
      ::unlink(("failures/" + name).c_str());
    }
    ::rmdir("failures");
  }

  // Waits for an order of the lifeline. Returns true for "go ATTEMPT", and false for "end".
  bool await_order() {
    std::string line;
    for (;;) {
      pollfd ready{next_, POLLIN, 0};
      ::poll(&ready, 1, -1);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      char byte = 0;
      while (::read(next_, &byte, 1) == 1) {
        if (byte != '\n') {
          line += line.size() < 1000 ? std::string(1, byte) : "";
          continue;
        }
        const std::vector<std::string> words = split_words(std::exchange(line, {}));
        if (!words.empty() && words[0] == "end") {
          return false;
        }
        const auto number =
            words.size() == 2 && words[0] == "go" ? parse_number<int>(words[1]) : std::nullopt;
        if (number) {
          attempt_ = *number;
          return true;
        }
      }
    }
  }

  // ---- Retries of a sweep point, which use the same job, folder and output files

  bool prepare_retry() {
    const std::vector<std::string> words = read_job_words("retry");
    const int most = words.empty() ? 0 : parse_number<int>(words[0]).value_or(0);
    if (end_.how.succeeded() || was_stopped() || retries_ >= most) {
      return false;
    }
    // Remaining processes must not run alongside the retry.
    if (!stop_apart(order_.folder, job_.id, "again") || was_stopped()) {
      return false;
    }
    ++retries_;
    append_note(job_.folder, text::format("the point begins again (retry {} of {}) after {} {}", retries_,
                                          most, end_.how.signal != 0 ? "signal" : "exit",
                                          end_.how.signal != 0 ? end_.how.signal : end_.how.code));
    record_restart();
    return true;
  }

  // ---- The end

  void finish() {
    if (leave_tree(order_.folder, job_.id)) {
      land_own_tree(host_, order_.folder, job_.id);  // before the result: its readers expect the job's files
    }
    record_end();
    release_journal(here);
    ::unlink(".note");
    if (end_.how.signal != 0 || end_.how.code >= 125) {
      remove_container();  // the client was killed, or lost its connection to the engine
    }
    leave_init_file(job_.folder, job_.id);
    leave_lease();
  }

  // Whether the folder of the job was removed, or cleared. Without the rights to look, as for a home that is
  // closed after the last logout, it was not.
  static bool is_removed() {
    struct stat info {};
    return ::lstat(spec_name, &info) != 0 && errno != EACCES && errno != ENOKEY;
  }

  void record_end() {
    for (int tries = 0; tries < end_tries && !is_removed(); ++tries) {
      if (append_safely(host_, here, job_.id, wire::JobEnded{end_})) {
        return;
      }
      ::sleep(1);
    }
  }

  void remove_container() {
    try {
      if (find_engine(job_)) {
        remove_box(host_, job_);
      }
    } catch (const CannotStart&) {
      return;  // job-list finds the container later
    }
  }

  // The last guard of a lease removes its file, unless a process of a job still holds it. The next
  // query of this user's removes such files later.
  void leave_lease() {
    if (exists("devices")) {
      close_lease(lease_fd);
    }
  }

  const Host& host_;
  const GuardOrder& order_;
  int report_;
  JobRecord job_;
  int alive_ = -1;
  int next_ = -1;
  bool has_attempts_ = false;
  int attempt_ = 1;
  int retries_ = 0;
  std::optional<std::uint64_t> kills_before_{};
  wire::JobEnd end_{};
};

}  // namespace

bool start_guard(const Host& host, const GuardOrder& order, const std::string& id, int report) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    Guard(host, order, id, report).run();
    _exit(0);
  }
  return pid > 0;
}

int run_supervise(int count, char** words) {
  const auto mask = count > 1 ? parse_octal(words[1]) : std::nullopt;
  if (count < 3 || !mask || *mask > 0777) {
    return 2;
  }
  const Host host = Host::of_this_process();
  const GuardOrder order{.folder = {.project = Path(words[0]).parent_path(), .jobs = words[0]},
                         .mask = static_cast<mode_t>(*mask),
                         .started = read_wall_clock()};
  for (int i = 2; i < count; ++i) {
    if (wire::is_id(words[i]) && !start_guard(host, order, words[i], STDOUT_FILENO)) {
      write_whole(STDOUT_FILENO, text::format("{} ! {}\n", words[i], find_process_limit(host)));
    }
  }
  return 0;
}

}  // namespace remote::agent
