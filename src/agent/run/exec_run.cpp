#include "agent/run/exec_run.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/host.hpp"
#include "agent/host/run.hpp"
#include "agent/job/exec_job.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/own_python.hpp"
#include "agent/job/record.hpp"
#include "agent/job/variables.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "rules/python_version.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/run.hpp"

namespace remote::agent {
namespace {

// Descriptors for a shell. Their numbers have one digit because dash knows no others.
constexpr int run_script_fd = 7;
constexpr int run_agent_fd = 8;
constexpr int shell_rc_fd = 9;  // replaces the request
// The exit code if the debugger is no longer waiting, as in attach.py.
constexpr int exit_of_gone = 13;

constexpr std::string_view read_start_files =
    "for remote_file in /etc/profile \"$HOME/.profile\"; do\n"
    "  if [ -r \"$remote_file\" ]; then . \"$remote_file\"; fi\n"
    "done\n"
    "exec /proc/self/fd/8 exec-run read\n";

// bash reads this instead of .bashrc: the startup files of a login shell, and then, if they have reset PATH,
// the project's environment again.
constexpr std::string_view shell_rc =
    "exec 9<&-\n"
    "if [ -r /etc/profile ]; then . /etc/profile; fi\n"
    "for remote_file in ~/.bash_profile ~/.bash_login ~/.profile; do\n"
    "  if [ -r \"$remote_file\" ]; then\n"
    "    . \"$remote_file\"\n"
    "    break\n"
    "  fi\n"
    "done\n"
    "if [ \"$PATH\" != \"$REMOTE_SHELL_PATH\" ]; then eval \"$remote_environment\"; fi\n"
    "cd -- \"$remote_project\" 2>/dev/null || cd || :\n"
    "unset remote_file remote_project remote_environment REMOTE_SHELL_PATH\n";

wire::RunRequest read_request() {
  wire::Bytes bytes(wire::max_payload);
  const ssize_t count = ::pread(run_request_fd, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return wire::decode<wire::RunRequest>(bytes);
}

std::string find_shell() {
  const std::string shell = get_variable("SHELL");
  return shell.empty() ? "/bin/sh" : shell;
}

bool is_like_sh(const std::string& shell) {
  constexpr std::array<std::string_view, 5> names{"sh", "dash", "ash", "mksh", "yash"};
  const std::string name = Path(shell).filename();
  return name.starts_with("ksh") || std::ranges::find(names, name) != names.end();
}

class RunProcess {
 public:
  explicit RunProcess(wire::RunRequest request) : request_(std::move(request)) {}

  [[noreturn]] void begin() const {
    if (request_.debugger) {
      attach(*request_.debugger);
    }
    // These startup files reset PATH, so the environment is entered after them: here, and in bash at the end
    // of its own. Those of other shells do not change PATH, or only add to it.
    if (request_.shell && is_like_sh(find_shell())) {
      run_script(std::string(read_start_files));
    }
    enter();
  }

  [[noreturn]] void enter() const {
    const std::string project = expand_path(request_.project);
    if (!enter_logical_folder(project)) {
      if (!request_.shell) {
        fail_job("the project's folder " + project + " is not on this server; send it there first");
      }
      print_error("the project's folder " + project + " is not on this server yet; this is your home folder");
      enter_logical_folder(expand_path("~"));
    }
    for (const wire::Variable& variable : request_.variables) {
      set_variable(variable.name, variable.value);
    }
    if (trim(request_.activate).empty() ||
        (request_.environment && enter_environment(*request_.environment))) {
      finish(true, "");
    }
    run_script("eval " + quote_word("set --\n" + request_.activate) +
               "\nexec /proc/self/fd/8 exec-run entered \"$?\" \"${__failed-}\"\n");
  }

  // `prologue`: the exit code of a failed prologue.
  [[noreturn]] void finish(bool has_entered, const std::string& prologue) const {
    ::close(run_request_fd);
    const std::string failure = !has_entered ? "cannot enter the Python environment"
                                : !prologue.empty()
                                    ? "the prologue in configs.yaml failed (exit code " + prologue + ")"
                                    : "";
    if (!failure.empty() && !request_.shell) {
      fail_job(failure);  // a command never runs without the user's prologue
    }
    if (!failure.empty()) {
      print_error(failure);
    }
    if (request_.shell) {
      become_shell();
    }
    enter_workdir();
    // With --norc, bash does not read .bashrc, which it otherwise does in an sshd session. That file may
    // print something, or leave the Python environment.
    become(is_on_path("bash") ? std::vector<std::string>{"bash", "--norc", "-c", "--", request_.command}
                              : std::vector<std::string>{"sh", "-c", "--", request_.command});
  }

 private:
  [[noreturn]] static void run_script(const std::string& script) {
    const Descriptor text = hold_text(text::format("exec {}<&-\n", run_script_fd) + script);
    const Descriptor agent(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    if (!text || !agent) {
      fail_job("no memory for the script that starts it");
    }
    pass_on(agent.get(), run_agent_fd);
    pass_on(text.get(), run_script_fd);
    ::execl("/bin/sh", "sh", text::format("/proc/self/fd/{}", run_script_fd).c_str(), nullptr);
    fail_job("the server has no /bin/sh");
  }

  // Executes a program for the user, with the account's own environment.
  [[noreturn]] static void become(std::vector<std::string> words) {
    // Only bash can define an exported function.
    const std::string functions = get_variable("REMOTE_HID_FUNCTIONS");
    ::unsetenv("REMOTE_HID_FUNCTIONS");
    restore_account_variables();
    if (!functions.empty() && is_on_path("bash")) {
      set_variable("REMOTE_HID_FUNCTIONS", functions);
      words.insert(words.begin(),
                   {"bash", "--norc", "-c",
                    "eval \"$REMOTE_HID_FUNCTIONS\"; unset REMOTE_HID_FUNCTIONS; exec -- \"$@\"", "bash"});
    }
    ::execvp(words[0].c_str(), pointers_to(words).data());
    fail_job("cannot run " + words[0]);
  }

  // ---- A login shell

  [[noreturn]] void become_shell() const {
    const std::string shell = find_shell();
    std::vector<std::string> words = find_node();
    const bool is_on_node = !words.empty();
    words.push_back(shell);
    if (Path(shell).filename() != "bash") {
      words.emplace_back(is_like_sh(shell) ? "-i" : "-l");
      become(words);
    }
    const std::string rc = make_shell_rc();
    set_variable("REMOTE_SHELL_PATH", get_variable("PATH"));
    if (is_on_node) {  // descriptors are not passed to a node
      set_variable("REMOTE_SHELL_RC", rc);
      words.insert(words.end(), {"--norc", "-c",
                                 "exec 9<<<\"$REMOTE_SHELL_RC\"; unset REMOTE_SHELL_RC; exec \"$0\" --rcfile "
                                 "/dev/fd/9 -i",
                                 shell});
      become(words);
    }
    const Descriptor text = hold_text(rc);
    if (!text) {
      fail_job("no memory for the shell's start file");
    }
    pass_on(text.get(), shell_rc_fd);
    words.insert(words.end(), {"--rcfile", text::format("/dev/fd/{}", shell_rc_fd), "-i"});
    become(words);
  }

  // Returns the command that runs another one on a Slurm node; empty if the shell is for this server.
  std::vector<std::string> find_node() const {
    if (!request_.shell->node) {
      return {};
    }
    const wire::ShellNode& node = *request_.shell->node;
    if (!is_on_path("srun") && !node.path.empty()) {
      set_variable("PATH", get_variable("PATH") + ":" + node.path);
    }
    if (!is_on_path("srun")) {
      fail_job("there is no srun on this server: is it the login node of a Slurm cluster?");
    }
    std::vector<std::string> words{"srun", "--pty"};
    words.insert(words.end(), node.options.begin(), node.options.end());
    return words;
  }

  std::string make_shell_rc() const {
    std::string environment;
    for (const wire::Variable& variable : request_.variables) {
      environment += "export " + variable.name + "=" + quote_word(variable.value) + "\n";
    }
    environment += request_.activate;
    return "remote_project=" + quote_word(expand_path(request_.project)) +
           "\nremote_environment=" + quote_word(environment) + "\n" + std::string(shell_rc);
  }

  // ---- A debugger

  [[noreturn]] void attach(const wire::DebuggerAttachment& wanted) const {
    const Host host = Host::of_this_process();
    const JobsFolder folder = JobsFolder::of(host, wanted.place);
    const Path job = folder.jobs / wanted.job;
    const Path socket = job / "debug" / (wanted.wait + ".sock");
    if (const auto found = look_at_entry(socket); !found || !S_ISSOCK(found->st_mode)) {
      ::_exit(exit_of_gone);
    }
    const auto spec = read_spec(job);
    const Path program = folder.jobs / ".bin" / (spec ? spec->program : "") / "python/attach.py";
    if (!spec || !is_file(program)) {
      print_error("the copy of the programs that started the job is missing");
      ::_exit(1);
    }
    const auto python = find_own_python(host, request_.activate);
    if (!python) {
      print_error(text::format("there is no {} on this server for attach", rules::usable_python));
      ::_exit(1);
    }
    ::close(run_request_fd);
    std::vector<std::string> words = python->command({program, socket});
    std::vector<std::string> variables = host.list_variables();
    ::execve(words[0].c_str(), pointers_to(words).data(), pointers_to(variables).data());
    fail_job("cannot run " + words[0]);
  }

  wire::RunRequest request_;
};

}  // namespace

int run_exec_run(int count, char** words) {
  const std::string_view step = words[0];
  if (step != "begin" && step != "read" && (step != "entered" || count != 3)) {
    return 2;
  }
  if (step != "begin") {
    ::close(run_agent_fd);
  }
  try {
    const RunProcess process(read_request());
    if (step == "begin") {
      process.begin();
    }
    if (step == "read") {
      process.enter();
    }
    process.finish(std::string_view(words[1]) == "0", words[2]);
  } catch (const std::exception& error) {
    fail_job(error.what());
  }
}

}  // namespace remote::agent
