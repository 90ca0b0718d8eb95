#include "servers/run_command.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/shell_quote.hpp"
#include "servers/agent.hpp"
#include "servers/python_env.hpp"
#include "wire/cbor.hpp"

namespace remote::servers {
namespace {

void read_empty(int fd) {
  std::array<char, 64> buffer{};
  while (uninterrupted([&] { return ::read(fd, buffer.data(), buffer.size()); }) > 0) {
  }
}

TerminalSize ask_size(const TerminalSide& side) {
  constexpr int most = 65535;
  const TerminalSize size = side.size ? side.size() : TerminalSize();
  return {std::clamp(size.columns, 0, most), std::clamp(size.rows, 0, most)};
}

// A foreground process on a server.
class ForegroundRun {
 public:
  ForegroundRun(ssh::Connection& connection, const wire::RunRequest& request, const TerminalSide& side,
                const ssh::Sink& sink, const OnSlowLogin& on_slow_login, const Cancel& cancel)
      : side_(side),
        sink_(sink),
        on_slow_login_(on_slow_login),
        has_terminal_(request.terminal.has_value()),
        input_(side.input),
        agent_(connection, cancel) {
    Agent::Handlers handlers;
    handlers.message = [this](wire::Reply reply) { take(std::move(reply)); };
    handlers.data = [this](std::string_view data) { take_output(data); };
    handlers.end = [this] { has_ended_ = true; };
    log_info(connection.server(), "command: begins, {} bytes", request.command.size());
    stream_ = agent_.open_run(request, std::move(handlers));
  }

  ExitStatus finish(std::chrono::milliseconds limit) {
    const auto begin = ssh::Flow::Clock::now();
    while (!has_ended_) {
      const bool reads = has_begun_ && input_ >= 0 && agent_.input_credit(stream_) > 0;
      std::array<pollfd, 2> also{
          {{has_begun_ ? side_.resized : -1, POLLIN, 0}, {reads ? input_ : -1, POLLIN, 0}}};
      const auto left =
          ssh::time_left(agent_.connection(), begin, limit, "the command did not end within", "it may hang");
      agent_.wait(std::min({std::chrono::milliseconds(60000), left, time_until_slow(begin)}), {}, also);
      if (also[0].revents != 0) {
        read_empty(side_.resized);
        agent_.send_size(stream_, ask_size(side_));
      }
      if (also[1].revents != 0) {
        read_input();
      }
    }
    if (!end_) {
      throw Error("the server's answer is not understood", "the end of the command is missing")
          .mended_by(Remedy::tell_more);
    }
    agent_.finish_run();
    log_info(agent_.connection().server(), "command: {} after {}", end_->describe(), watch_.text());
    return *end_;
  }

 private:
  // Reports a slow login once.
  std::chrono::milliseconds time_until_slow(ssh::Flow::Clock::time_point begin) {
    if (is_slow_ || has_begun_) {
      return std::chrono::milliseconds::max();
    }
    const auto slow =
        std::min<std::chrono::milliseconds>(std::chrono::seconds(4), agent_.connection().answer_time() / 2);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(begin + slow - ssh::Flow::Clock::now());
    if (left.count() > 0) {
      return left;
    }
    is_slow_ = true;
    if (on_slow_login_ && agent_.awaits_login_shell()) {
      on_slow_login_();
    }
    return std::chrono::milliseconds::max();
  }

  void take(wire::Reply reply) {
    if (auto* ends = std::get_if<wire::RunEnds>(&reply)) {
      end_ = ends->how.status();
      return;
    }
    take_reply<wire::RunBegins>(std::move(reply));
    if (!std::exchange(has_begun_, true) && side_.begin) {
      side_.begin();
    }
  }

  void take_output(std::string_view data) {
    const char selector = data.empty() ? '\0' : data.front();
    if (selector != 1 && selector != 2) {
      throw Error("the server's answer is not understood", "it has an unknown output")
          .mended_by(Remedy::tell_more);
    }
    if (sink_ && data.size() > 1) {
      sink_(selector == 1 ? ssh::Stream::out : ssh::Stream::err, data.substr(1));
    }
  }

  void read_input() {
    std::vector<char> buffer(std::min<std::size_t>(agent_.input_credit(stream_), 65536));
    const ssize_t count = uninterrupted([&] { return ::read(input_, buffer.data(), buffer.size()); });
    if (count > 0) {
      last_ = buffer[static_cast<std::size_t>(count) - 1];
      agent_.send_input(stream_, {buffer.data(), static_cast<std::size_t>(count)});
    } else if (count == 0 || !would_block()) {
      input_ = -1;
      end_input();
    }
  }

  void end_input() {
    if (!has_terminal_) {
      agent_.send_input(stream_, last_ == '\n' ? "" : "\n");
      agent_.end_input(stream_);
    } else if (!side_.input_is_terminal) {
      // Ctrl-D. Within a line, a single one only passes on the beginning of the line.
      agent_.send_input(stream_, last_ == '\n' ? "\x04" : "\x04\x04");
    }
  }

  const Stopwatch watch_{};
  const TerminalSide& side_;
  const ssh::Sink& sink_;
  const OnSlowLogin& on_slow_login_;
  const bool has_terminal_;
  int input_;
  char last_ = '\n';
  bool is_slow_ = false;  // has been reported, or the agent was being installed
  bool has_begun_ = false;
  bool has_ended_ = false;
  std::optional<ExitStatus> end_;
  Agent::StreamId stream_ = 0;
  Agent agent_;
};

}  // namespace

wire::RunRequest make_run(const std::string& project, const ProcessSpec& process) {
  wire::RunRequest request{.project = project,
                           .variables = to_wire(process.env),
                           .activate = inline_files(process.activate),
                           .environment = process.environment,
                           .command = process.command};
  check_value(request.command);
  constexpr std::size_t most = wire::max_payload - 4096;  // a terminal needs a few more bytes
  if (wire::encode(request).size() > most) {
    throw Error::usage("cannot run", "the command and its variables have more than 1 MB",
                       "put them into a file of the project");
  }
  return request;
}

ExitStatus run_in_foreground(ssh::Connection& connection, const wire::RunRequest& request,
                             const ssh::Sink& sink, const Cancel& cancel, std::chrono::milliseconds limit,
                             const OnSlowLogin& on_slow_login) {
  const TerminalSide none;
  return ForegroundRun(connection, request, none, sink, on_slow_login, cancel).finish(limit);
}

ExitStatus run_with_input(ssh::Connection& connection, wire::RunRequest request, const TerminalSide& side,
                          const ssh::Sink& sink, const Cancel& cancel, const OnSlowLogin& on_slow_login) {
  request.has_input = true;
  if (request.terminal) {
    request.terminal->type = side.type;
    request.terminal->size = ask_size(side);
  }
  return ForegroundRun(connection, request, side, sink, on_slow_login, cancel).finish({});
}

}  // namespace remote::servers
