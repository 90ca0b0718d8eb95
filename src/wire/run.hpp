#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/terminal.hpp>

#include "wire/jobs.hpp"
#include "wire/start.hpp"

// Foreground processes of a client: `remote run`, `shell` and `attach`.

namespace remote::wire {

template <>
struct Fields<TerminalSize> {
  static constexpr auto fields() {
    constexpr Limits number = in_range(0, 65535);
    return field_list(field("columns", &TerminalSize::columns, number),
                      field("rows", &TerminalSize::rows, number));
  }
};

struct RunTerminal {
  std::string type;  // TERM
  TerminalSize size;

  static constexpr auto fields() {
    return field_list(field("type", &RunTerminal::type, at_most(1000)), field("size", &RunTerminal::size));
  }
};

// A Slurm node for a shell, which is run by srun.
struct ShellNode {
  std::vector<std::string> options{};  // options for srun
  std::string path{};                  // the PATH with srun, if the account's PATH does not have it

  static constexpr auto fields() {
    return field_list(field("options", &ShellNode::options), field("path", &ShellNode::path));
  }
};

// The user's login shell.
struct LoginShell {
  std::optional<ShellNode> node{};  // nullopt: on this server

  static constexpr auto fields() { return field_list(field("node", &LoginShell::node)); }
};

// Connects to a debugger that is waiting in a job. The exit code is that of attach.py.
struct DebuggerAttachment {
  JobsPlace place;
  std::string job;
  std::string wait;  // DebuggerWait::id

  static constexpr auto fields() {
    using A = DebuggerAttachment;
    return field_list(field("place", &A::place), field("job", &A::job, an_id()),
                      field("wait", &A::wait, a_word(".", 64)));
  }
};

// Runs a process, and stops it when the client aborts the stream or disconnects. The answer consists of
// RunBegins, data and RunEnds. The first byte of each data frame selects the output: 1 for stdout or the
// terminal, 2 for stderr. The client's data is the input. With a terminal, the client may send
// ResizeTerminal.
struct RunRequest {
  static constexpr std::string_view kind = "run";

  std::string project{};  // may begin with "~/"
  std::vector<Variable> variables{};
  std::string activate{};                          // shell text that enters the Python environment
  std::optional<PythonEnvironment> environment{};  // has the same effect as `activate`
  std::optional<RunTerminal> terminal{};
  bool has_input = false;  // if false and there is no terminal, stdin is empty
  // Exactly one of these three is set.
  std::string command{};
  std::optional<LoginShell> shell{};
  std::optional<DebuggerAttachment> debugger{};

  static constexpr auto fields() {
    using R = RunRequest;
    return field_list(field("project", &R::project, at_most(4096)),
                      field("variables", &R::variables, at_most(max_variables)),
                      field("activate", &R::activate, at_most(max_start_text)),
                      field("environment", &R::environment), field("terminal", &R::terminal),
                      field("has_input", &R::has_input),
                      field("command", &R::command, at_most(max_start_text)), field("shell", &R::shell),
                      field("debugger", &R::debugger));
  }
};

struct RunBegins {
  static constexpr std::string_view kind = "run_begins";

  static constexpr auto fields() { return field_list(); }
};

struct RunEnds {
  static constexpr std::string_view kind = "run_ends";

  ProcessEnd how;

  static constexpr auto fields() { return field_list(field("how", &RunEnds::how)); }
};

struct ResizeTerminal {
  TerminalSize size;

  static constexpr auto fields() { return field_list(field("size", &ResizeTerminal::size)); }
};

}  // namespace remote::wire
