#include "servers/terminal_session.hpp"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "server/program.hpp"
#include "servers/action.hpp"
#include "servers/answer.hpp"
#include "servers/shell_text.hpp"
#include "ssh/pump.hpp"

namespace remote::servers {
namespace {

using namespace std::chrono_literals;

std::string environment_of(const ProcessSpec& process) {
  Script environment;
  for (const auto& [name, value] : process.env) {
    check_variable(name);
    environment.call("export", {name + "=" + value});
  }
  return shell_text(environment.append(process.activate));
}

// The request comes by the terminal, which is made raw until it is there: no echo, no line of limited length,
// no key with a meaning.
std::string command_line() {
  return fmt::format(
      "exec sh -c 'terminal_modes=$(stty -g) && stty raw -echo && echo && echo {}tty || exit; {}'",
      answer_mark, server::program_text());
}

bool is_mark(std::string_view line, std::string_view word) {
  return trim(line) == std::string(answer_mark) + std::string(word);
}

void read_empty(int fd) {
  std::array<char, 64> buffer{};
  while (uninterrupted([&] { return ::read(fd, buffer.data(), buffer.size()); }) > 0) {
  }
}

TerminalSize size_of(const TerminalSide& side) {
  return side.size ? side.size() : TerminalSize();
}

class TerminalRun {
 public:
  TerminalRun(ssh::Connection& connection, const std::string& request, const TerminalSide& side,
              const ssh::Sink& sink, const Cancel& cancel)
      : request_(request),
        side_(side),
        sink_(sink),
        pump_(connection, cancel),
        flow_(
            pump_,
            [&](ssh::Sink taken) {
              return connection.open_on_terminal(command_line(), {side.type, size_of(side)},
                                                 std::move(taken));
            },
            [this](ssh::Stream stream, std::string_view data) { take(stream, data); }) {
    flow_.expect_answer([this] { return login_.over(); });
  }

  ExitStatus finish() {
    while (!flow_.over()) {
      std::array<pollfd, 1> also{{{typing_ ? side_.resized : -1, POLLIN, 0}}};
      pump_.wait(60s, also);
      if (also[0].revents != 0) {
        read_empty(side_.resized);
        flow_.channel().resize(size_of(side_));
      }
    }
    if (!login_.over()) {
      if (!errors_.empty()) {
        throw Error("nothing was run on the server", trim(errors_),
                    "a command can be run without a terminal");
      }
      throw login_shell_ended(
          ExecResult{flow_.channel().status().value_or(ExitStatus::exited(255)), {}, login_.text()}
              .describe());
    }
    if (!script_ran_.over()) {
      check_refusal(script_ran_.text());
    }
    return flow_.ended();
  }

 private:
  void take(ssh::Stream stream, std::string_view data) {
    if (stream == ssh::Stream::err) {
      append_end(errors_, data);  // of the server itself: a terminal has one stream
    }
    if (!login_.over()) {
      data = login_.strip(data, [](std::string_view line) { return is_mark(line, "tty"); });
      if (login_.over()) {
        flow_.send(request_);
      }
    }
    if (login_.over() && !script_ran_.over()) {
      data = script_ran_.strip(data, [this](std::string_view line) {
        if (trim(line) == server::program_needed && !std::exchange(program_sent_, true)) {
          flow_.send(server::program_installation() + request_);  // behind the request, which it throws away
        }
        return is_mark(line, "run");
      });
    }
    if (script_ran_.over()) {
      begin();  // before anything of the command's is shown
    }
    if (!data.empty()) {
      sink_(ssh::Stream::out, data);
    }
  }

  void begin() {
    if (std::exchange(typing_, true)) {
      return;
    }
    if (side_.begin) {
      side_.begin();
    }
    flow_.send_from(side_.input, [this](char last) {
      if (!side_.input_is_terminal) {
        // Ctrl-D; within a line, one only hands over what there is of it
        flow_.send(last == '\n' ? "\x04" : "\x04\x04");
      }
    });
  }

  const std::string& request_;
  const TerminalSide& side_;
  const ssh::Sink& sink_;
  Greeting login_;       // until the terminal is ready for the request
  Greeting script_ran_;  // until what comes is the command's
  std::string errors_;
  bool program_sent_ = false;
  bool typing_ = false;
  ssh::Pump pump_;
  ssh::Flow flow_;
};

}  // namespace

std::string terminal_script(const std::string& project, const ProcessSpec& process) {
  Script script;
  script.set_path("project", project).set("command", process.command);
  script.set("environment", environment_of(process));
  return script.add("lib/tty.sh").add("actions/run.sh").open_input();
}

std::string shell_script(const std::string& project, const ProcessSpec& process) {
  const std::string environment = environment_of(process);
  Script rc;
  rc.set_path("remote_project", project).set("remote_environment", environment).add("lib/shell_rc.sh");
  Script script;
  script.set_path("project", project).set("environment", environment).set("bash_rc", shell_text(rc));
  return script.add("lib/tty.sh").add("actions/shell.sh").open_input();
}

ExitStatus run_on_terminal(ssh::Connection& connection, const std::string& request, const TerminalSide& side,
                           const ssh::Sink& sink, const Cancel& cancel) {
  log_info(connection.server(), "terminal {}: begins, {} bytes of input", side.type, request.size());
  TerminalRun run(connection, request, side, sink, cancel);
  const ExitStatus status = run.finish();
  log_info(connection.server(), "terminal: {}", status.describe());
  return status;
}

}  // namespace remote::servers
