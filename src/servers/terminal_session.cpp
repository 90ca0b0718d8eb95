#include "servers/terminal_session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
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
#include "servers/shell_text.hpp"

namespace remote::servers {
namespace {

using namespace std::chrono_literals;

// So long nothing has come when a command that has ended and whose terminal stays open is taken for over.

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
              const ssh::Sink& sink)
      : connection_(connection), request_(request), unsent_(request), side_(side), sink_(sink) {
    channel_ = connection.open_on_terminal(
        command_line(), {side.type, size_of(side)},
        [this](ssh::Stream stream, std::string_view data) { take(stream, data); });
  }

  ExitStatus finish(const Cancel& cancel) {
    while (!end_.over(*channel_)) {
      serve(cancel);
    }
    const std::optional<ExitStatus> status = channel_->status();
    if (!login_.over()) {
      if (!errors_.empty()) {
        throw Error("nothing was run on the server", trim(errors_),
                    "a command can be run without a terminal");
      }
      throw login_shell_ended(
          ExecResult{status.value_or(ExitStatus::exited(255)), {}, login_.text()}.describe());
    }
    if (!status) {
      throw Error("connection lost", "the server closed it before the command ended",
                  "check the network and the server, then run the command again");
    }
    return *status;
  }

 private:
  void take(ssh::Stream stream, std::string_view data) {
    end_.heard();
    if (stream == ssh::Stream::err) {
      append_end(errors_, data);  // of the server itself: a terminal has one stream
    }
    if (!login_.over()) {
      data = login_.strip(data, [](std::string_view line) { return is_mark(line, "tty"); });
    }
    if (login_.over() && !script_ran_.over()) {
      data = script_ran_.strip(data, [this](std::string_view line) {
        if (trim(line) == server::program_needed) {
          unsent_ += server::program_installation() + request_;  // behind the request, which it throws away
        }
        return is_mark(line, "run");
      });
    }
    if (script_ran_.over()) {
      begin();  // before anything of the command's is shown
    }
    if (!data.empty()) {
      sink_(ssh::Stream::out, data);
      end_.heard();  // that may have taken long, and what came meanwhile is still to be read
    }
  }

  // Waits for the next thing to happen, and does what it asks for.
  void serve(const Cancel& cancel) {
    send_request();
    const bool wanted = typing_ && !input_ended_ && channel_->writable() > 0;
    std::array<pollfd, 3> also{{{cancel.fd(), POLLIN, 0},
                                {wanted ? side_.input : -1, POLLIN, 0},
                                {typing_ ? side_.resized : -1, POLLIN, 0}}};
    connection_.pump(end_.left(*channel_).value_or(60s), also);
    cancel.check();
    if (also[2].revents != 0) {
      read_empty(side_.resized);
      channel_->resize(size_of(side_));
    }
    if (also[1].revents != 0) {
      pass_input();
    }
  }

  void begin() {
    if (!typing_ && side_.begin) {
      side_.begin();
    }
    typing_ = true;
  }

  void send_request() {
    if (login_.over() && !unsent_.empty()) {
      channel_->write(std::exchange(unsent_, {}));
    }
  }

  void pass_input() {
    std::array<char, 16384> buffer{};
    const std::size_t most = std::min(buffer.size(), channel_->writable());
    const ssize_t count = uninterrupted([&] { return ::read(side_.input, buffer.data(), most); });
    if (count > 0) {
      channel_->write({buffer.data(), static_cast<std::size_t>(count)});
      within_line_ = buffer.at(static_cast<std::size_t>(count) - 1) != '\n';
    } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      input_ended_ = true;
      // Within a line, Ctrl-D only hands over what there is of it.
      channel_->write(within_line_ ? "\x04\x04" : "\x04");
    }
  }

  ssh::Connection& connection_;
  const std::string& request_;
  std::string unsent_;
  const TerminalSide& side_;
  const ssh::Sink& sink_;
  std::unique_ptr<ssh::Channel> channel_;
  Greeting login_;       // until the terminal is ready for the request
  Greeting script_ran_;  // until what comes is the command's
  std::string errors_;
  bool typing_ = false;
  bool input_ended_ = false;
  bool within_line_ = false;
  ssh::OutputEnd end_;
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
  TerminalRun run(connection, request, side, sink);
  const ExitStatus status = run.finish(cancel);
  log_info(connection.server(), "terminal: {}", status.describe());
  return status;
}

}  // namespace remote::servers
