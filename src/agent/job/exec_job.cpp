#include "agent/job/exec_job.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/enter_container.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/record.hpp"
#include "agent/job/variables.hpp"
#include "agent/lease/wait_for_lease.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr int exit_of_failure = 127;
// Linux limits an argument to 128 KiB.
constexpr std::size_t longest_argument = 120'000;
constexpr std::size_t longest_list = std::size_t{1} << 20U;
constexpr std::size_t longest_program_file = std::size_t{4} << 20U;
// Descriptors for a shell. Their numbers have one digit because dash knows no others.
constexpr int script_fd = 9;
constexpr int agent_fd = 8;

class JobProcess {
 public:
  JobProcess(Path folder, RankFiles files) : folder_(std::move(folder)), files_(std::move(files)) {
    auto spec = read_spec(folder_);
    if (!spec) {
      fail_job("cannot read " + (folder_ / spec_name).string());
    }
    spec_ = std::move(*spec);
    jobs_ = find_real_path(folder_.parent_path());
    program_ = find_real_path(Path(jobs_) / ".bin" / spec_.program);
  }

  [[noreturn]] void start(bool is_under_slurm) {
    if (spec_.is_leased) {
      wait_for_turn();
    }
    read_own_variables();
    if (!spec_.container) {
      run_command(expand_path(spec_.project), "");
    }
    if (is_under_slurm) {
      files_.variables = files_.note + ".variables";
      write_job_file(folder_ / files_.variables, collect_slurm_variables(), O_TRUNC);
    }
    if (trim(spec_.container->prologue).empty()) {
      start_engine();
    }
    enter_project("cannot enter the project folder");
    pass_on(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC), agent_fd);
    std::string script = begin_script() + "job_prologue " + quote_word(spec_.container->prologue) +
                         text::format("\nexec /proc/self/fd/{} exec-job engine", agent_fd);
    for (const std::string& word :
         {folder_.string(), files_.out, files_.err, files_.note, files_.variables}) {
      script += " " + quote_word(word);
    }
    run_script(script);
  }

  [[noreturn]] void start_engine() {
    enter_project("cannot enter the project folder");
    enter_container(*spec_.container, {folder_, program_, files_});
  }

  // Runs in the container. `home` is the home directory outside, which paths of the environment can refer to.
  [[noreturn]] void start_inside(const std::string& home, const std::string& project) {
    read_own_variables();
    const std::string own_home = get_variable("HOME");
    if (own_home.size() < 2 || ::access(own_home.c_str(), W_OK) != 0) {
      set_variable("HOME", choose_home(folder_, read_file("/proc/self/mountinfo").value_or("")));
    }
    run_command(project, home);
  }

 private:
  void enter_project(const char* failure) {
    if (!enter_logical_folder(expand_path(spec_.project))) {
      fail_job(failure);
    }
  }

  // ---- Before the variables

  // Waits until the launch has its lease. The first job on this server waits for all.
  void wait_for_turn() const {
    const std::vector<std::string> words = read_job_words(folder_ / "queue");
    if (words.empty()) {
      return;
    }
    if (words[0] != folder_.filename()) {
      std::array<char, 3> order{};
      const int fifo = ::open((folder_ / ".turn").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
      if (fifo < 0 || ::read(fifo, order.data(), order.size()) != 3) {
        fail_job("the job that waited for the turn of all is gone");
      }
      ::close(fifo);
      return;
    }
    const pid_t waiter = ::fork();
    if (waiter == 0) {
      _exit(run_wait_for_lease(folder_.c_str()));
    }
    int status = -1;
    while (waiter > 0 && ::waitpid(waiter, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
      fail_job("its turn did not come");
    }
  }

  // Reads the variables that are not in the spec.
  void read_own_variables() {
    // The token is only in this file, and never in an argument.
    if (const std::vector<std::string> web = read_job_words(folder_ / "web"); web.size() == 2) {
      set_variable("REMOTE_WEB_PORT", web[0]);
      set_variable("JUPYTER_TOKEN", web[1]);
    }
    if (spec_.is_leased) {
      devices_ = read_list("devices", "cannot read the resources leased for it");
    }
    if (exists(folder_ / "again")) {
      attempt_ = exists(folder_ / "attempt") ? read_list("attempt", "cannot read the number of its attempt")
                                             : "RESTART_COUNT=0";
    }
  }
  std::string read_list(const char* name, const char* failure) const {
    auto text = read_job_file(folder_ / name, longest_list);
    if (!text) {
      fail_job(failure);
    }
    return *std::move(text);
  }

  // ---- The command

  [[noreturn]] void run_command(const std::string& project, const std::string& outer_home) {
    const bool is_inside = spec_.container.has_value();
    if (!enter_logical_folder(project)) {
      fail_job(is_inside ? "cannot enter the project folder inside the container"
                         : "cannot enter the project folder");
    }
    for (const wire::Variable& variable : spec_.variables) {
      set_variable(variable.name, variable.value);
    }
    set_variables(devices_);
    set_variables(attempt_);
    if (!attempt_.empty()) {
      separate_attempt();
    }
    const bool is_entered = trim(spec_.activate).empty() || enter(outer_home);
    const std::vector<wire::Variable> defaults = take_defaults();
    if (is_entered) {
      set_defaults(defaults);
    }
    const std::string startup = find_startup_folder(project);
    const std::string programs = spec_.programs.empty() ? "" : link_programs();
    if (is_entered && is_inside && !is_on_path("python")) {
      set_variable("PATH", get_variable("PATH") + ":" + (folder_ / "bin").string());
    }
    if (is_entered && !startup.empty()) {
      prepend_variable("PYTHONPATH", startup);
    }
    if (is_entered && !programs.empty()) {
      prepend_variable("PATH", programs);
    }
    enter_last_folder();
    if (is_entered && spec_.command.size() <= longest_argument && restore_account_variables()) {
      run_shell({"--norc", "-c", "--", spec_.command});
    }
    std::string script = begin_script();
    if (!is_entered) {
      const std::string last = get_variable("PWD");
      enter_logical_folder(project);
      script += is_inside ? "remote_home=$HOME\nHOME=" + quote_word(outer_home) + "\n" : "";
      script += "job_activate " + quote_word(spec_.activate) + "\n";
      if (is_inside) {
        script += "HOME=$remote_home\ncommand -v python >/dev/null 2>&1 || PATH=$PATH:" +
                  quote_word((folder_ / "bin").string()) + "\nexport PATH\n";
      }
      for (const auto& [name, value] : defaults) {
        script += "job_default " + name + " " + quote_word(value) + "\n";
      }
      if (!startup.empty()) {
        script += "PYTHONPATH=" + quote_word(startup) + "${PYTHONPATH:+:$PYTHONPATH}\nexport PYTHONPATH\n";
      }
      if (!programs.empty()) {
        script += "PATH=" + quote_word(programs) + ":$PATH\nexport PATH\n";
      }
      script += "cd " + quote_word(last) + " || exit\n";
    }
    script +=
        (spec_.command.size() > longest_argument ? "eval " : "job_command ") + quote_word(spec_.command);
    run_script(script);
  }

  // The defaults of the spec, and those for the interface that a rank under Slurm has found
  // (agent/slurm/slurm_rank.cpp).
  std::vector<wire::Variable> take_defaults() const {
    std::vector<wire::Variable> defaults = spec_.defaults;
    if (const std::string interface = get_variable(interface_variable); !interface.empty()) {
      defaults.push_back({"GLOO_SOCKET_IFNAME", interface});
      defaults.push_back({"NCCL_SOCKET_IFNAME", "=" + interface});  // without "=" it is a prefix
      ::unsetenv(interface_variable);
    }
    return defaults;
  }

  // Returns false if a shell has to enter the Python environment.
  bool enter(const std::string& outer_home) const {
    const std::string home = get_variable("HOME");
    if (!outer_home.empty()) {
      set_variable("HOME", outer_home);
    }
    const bool is_entered = spec_.environment && enter_environment(*spec_.environment);
    if (!outer_home.empty()) {
      set_variable("HOME", home);
    }
    return is_entered;
  }

  // Writes the files that Python imports first. Returns their folder, "" if there are none.
  std::string find_startup_folder(const std::string& project) const {
    if (spec_.startup_files == wire::StartupFiles::none) {
      return "";
    }
    const Path folder = Path(project) / folder_.parent_path().filename() / folder_.filename() / "python";
    ::mkdir(folder.c_str(), 0700);
    const bool is_agent = spec_.startup_files == wire::StartupFiles::torch_agent;
    // The ranks of a Slurm node share the folder, and import the files while others write them.
    const auto put = [&](const char* name, const char* source) {
      const auto text = read_file(Path(program_) / "python" / source, longest_program_file);
      return text && put_file(folder / name, *text);
    };
    // PYTHONPATH cannot contain a folder with a colon.
    if (folder.string().find(':') == std::string::npos && put("remote_debugger.py", "debugger.py") &&
        put("sitecustomize.py", "sitecustomize.py") &&
        (!is_agent || (put("remote_torch_rendezvous.py", "torch_rendezvous.py") &&
                       put("remote_torch_agent.py", "torch_agent.py")))) {
      return folder;
    }
    write_whole(STDERR_FILENO, "remote: --enable-stacks is not possible in this folder\n");
    return "";
  }

  // Creates links to the agent in the job's folder, named after the launcher's programs that the command
  // calls (agent/mpi/programs.hpp). Returns their folder.
  std::string link_programs() const {
    const std::string project = get_variable("PWD");
    const Path folder = Path(project) / folder_.parent_path().filename() / folder_.filename();
    if (folder.string().find(':') != std::string::npos) {
      fail_job("this launcher needs a project folder without a ':' in its name, because it extends PATH");
    }
    set_variable("REMOTE_PROJECT_FOLDER", project);
    set_variable("REMOTE_JOB_FOLDER", folder);
    const Path programs = folder / "bin";
    const std::string agent = find_program_of_links();
    bool is_done = ::mkdir(programs.c_str(), 0700) == 0 || errno == EEXIST;
    for (const std::string& name : spec_.programs) {
      ::unlink((programs / name).c_str());
      is_done = is_done && ::symlink(agent.c_str(), (programs / name).c_str()) == 0;
    }
    if (!is_done) {
      fail_job("cannot write the launcher's programs into the job's folder: is the disk full?");
    }
    return programs;
  }
  // The agent's copy in the jobs folder. If that folder is mounted noexec, this program's own executable,
  // which is in memory.
  std::string find_program_of_links() const {
    const Path copy = Path(program_) / "remote-agent";
    if (::access(copy.c_str(), X_OK) == 0) {
      return copy;
    }
    const pid_t holder = ::fork();
    if (holder == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int null = ::open("/dev/null", O_RDWR);
      for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::dup2(null, fd);
      }
      ::execl("/proc/self/exe", "remote-agent", "mpi-hold", nullptr);
      _exit(exit_of_failure);
    }
    if (holder < 0) {
      fail_job("no process can be started that keeps the launcher's programs in memory");
    }
    return text::format("/proc/{}/exe", holder);
  }

  // The command runs in the tree of a frozen launch, or in the folder named by REMOTE_WORKDIR.
  void enter_last_folder() const {
    if (!spec_.tree.empty()) {
      // sitecustomize.py uses it to redirect Python from the project to the tree.
      set_variable("REMOTE_PROJECT_FOLDER", get_variable("PWD"));
      if (!enter_logical_folder(Path(jobs_) / ".trees" / spec_.tree)) {
        fail_job("the tree of this launch is gone: start it again");
      }
      set_variable("REMOTE_TREE", get_variable("PWD"));
    }
    if (spec_.container && !spec_.container->workdir.empty() && get_variable("REMOTE_WORKDIR").empty() &&
        !enter_logical_folder(spec_.container->workdir)) {
      fail_job("the container has no folder " + spec_.container->workdir + " (workdir in configs.yaml)");
    }
    enter_workdir();
  }

  // ---- The shell

  std::string begin_script() const {
    return text::format("exec {}<&-\nremote_program=", script_fd) + quote_word(program_) +
           "\n. \"$remote_program/lib/job.sh\"\n";
  }

  [[noreturn]] static void run_script(const std::string& script) {
    const Descriptor text = hold_text(script);
    if (!text) {
      fail_job("no memory for the script that starts it");
    }
    pass_on(text.get(), script_fd);
    run_shell({text::format("/proc/self/fd/{}", script_fd)});
  }

  // With --norc, bash does not read .bashrc, which it otherwise does in an sshd session. That file may print
  // something, or leave the Python environment.
  [[noreturn]] static void run_shell(std::vector<std::string> words) {
    words.insert(words.begin(), "bash");
    ::execvp("bash", pointers_to(words).data());
    std::erase(words, "--norc");
    words[0] = "sh";
    ::execvp("sh", pointers_to(words).data());
    fail_job("the server has no shell on its PATH");
  }

  Path folder_;
  RankFiles files_;
  wire::JobSpec spec_;
  std::string jobs_;     // without links
  std::string program_;  // the copy of the server's program, without links
  std::string devices_;
  std::string attempt_;
};

extern "C" void ignore_exec_job_signal(int /*signal*/) {}

// The first process of a container. The kernel drops signals to this process unless it handles them, so the
// command runs in a child.
int run_inside_container(const Path& folder, const RankFiles& files, char** words) {
  ::umask(static_cast<mode_t>(parse_octal(words[1]).value_or(077)));
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM}) {
    std::signal(signal, ignore_exec_job_signal);
  }
  if (::chdir(folder.c_str()) != 0) {
    fail_job("the container has no folder " + folder.string());
  }
  const pid_t command = ::fork();
  if (command == 0) {
    // Opens the job's own output files, so that the engine does not have to copy the output.
    const int out = ::open(files.out.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    const int err = ::open(files.err.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (out >= 0 && err >= 0) {
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
    }
    if (files.variables != "-") {
      const auto variables = read_job_file(files.variables, longest_list);
      if (!variables) {
        fail_job("cannot read the variables of this rank inside the container");
      }
      for (const std::string& variable : split(*variables, '\0')) {
        const std::size_t end = variable.find('=');
        set_variable(variable.substr(0, end), variable.substr(end + 1));
      }
    }
    JobProcess(folder, files).start_inside(words[0], words[2]);
  }
  int status = exit_of_failure << 8;
  siginfo_t info{};
  while (command > 0 && info.si_pid != command &&
         (::waitid(P_ALL, 0, &info, WEXITED) == 0 || errno == EINTR)) {
  }
  if (info.si_pid == command) {
    status = info.si_status;
    if (info.si_code != CLD_EXITED) {
      // The note distinguishes a signal from a command that exits with 128+N.
      const int note = ::open(files.note.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
      write_whole(note, text::format("signal {}", status));
      return 128 + status;
    }
    return status;
  }
  return exit_of_failure;
}

}  // namespace

void fail_job(const std::string& reason) {
  print_error(reason);
  _exit(exit_of_failure);
}

void enter_workdir() {
  const std::string folder = get_variable("REMOTE_WORKDIR");
  if (!folder.empty() &&
      !enter_logical_folder(folder == "~" || folder.starts_with("~/") ? expand_path(folder) : folder)) {
    fail_job("the project has no folder " + folder +
             " here: send it with `remote rsync`, or name another with --workdir");
  }
}

void exec_job(const Path& folder, const RankFiles& files) {
  ::prctl(PR_SET_NAME, "remote-job");  // a guard has forked it
  if (exists(folder / "queue")) {
    // It may wait for hours. Its processes are found by the job's variable, which appears in /proc only after
    // an exec.
    ::execl("/proc/self/exe", "remote-agent", "exec-job", "wait", folder.c_str(), nullptr);
  }
  JobProcess(folder, files).start(false);
}

void exec_slurm_job(const Path& folder, const RankFiles& files) {
  JobProcess(folder, files).start(true);
}

int run_exec_job(int count, char** words) {
  const std::string_view step = words[0];
  if (step == "wait" && count == 2) {
    JobProcess(words[1], {}).start(false);
  }
  if (count < 6) {
    return 2;
  }
  const Path folder(words[1]);
  const RankFiles files{words[2], words[3], words[4], words[5]};
  if (step == "engine") {
    ::close(agent_fd);
    JobProcess(folder, files).start_engine();
  }
  return step == "inside" && count == 9 ? run_inside_container(folder, files, words + 6) : 2;
}

}  // namespace remote::agent
