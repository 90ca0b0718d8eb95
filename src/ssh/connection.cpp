#include "ssh/connection.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"

namespace remote::ssh {
namespace {

// So long nothing has come when a command that has ended and whose output stays open is taken for over; the
// second where nothing more is expected.
constexpr std::chrono::milliseconds quiet_time{1000};
constexpr std::chrono::milliseconds short_time{50};

// Runs the command; `received` counts the bytes of its output.
ExecResult run_to_end(Connection& connection, const ExecRequest& request, const Cancel& cancel,
                      std::size_t& received) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + request.timeout;
  ExecResult result;
  auto heard = clock::now();
  const Sink sink = [&](Stream stream, std::string_view data) {
    received += data.size();
    heard = clock::now();
    if (received > request.max_output) {
      return;
    }
    if (request.sink) {
      request.sink(stream, data);
    } else {
      (stream == Stream::out ? result.out : result.err).append(data);
    }
  };
  const std::unique_ptr<Channel> channel = connection.open(request.command, sink);
  std::string_view input = request.input;
  bool input_open = true;
  // sshd tells the command's end also while other processes hold its output, and the channel's end only
  // after.
  const auto rest = [&] {
    const bool complete = request.complete && request.complete();
    return std::chrono::ceil<std::chrono::milliseconds>(heard + (complete ? short_time : quiet_time) -
                                                        clock::now());
  };
  while (!channel->finished() && !(channel->status() && rest().count() <= 0)) {
    if (input_open) {
      const std::size_t count = std::min(input.size(), channel->writable());
      if (count > 0) {
        channel->write(input.substr(0, count));
        input.remove_prefix(count);
      }
      if (input.empty()) {
        if (!request.keep_input) {
          channel->close_input();
        }
        input_open = false;
      }
    }
    auto wait = std::chrono::milliseconds(60000);
    if (request.timeout.count() > 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
      if (left.count() <= 0) {
        throw Error("no answer", fmt::format("the server did not finish within {:.0f} s",
                                             std::chrono::duration<double>(request.timeout).count()));
      }
      wait = std::min(wait, left + std::chrono::milliseconds(1));
    }
    if (request.silence.count() > 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(heard + request.silence - clock::now());
      if (left.count() <= 0) {
        throw Error("no answer", fmt::format("nothing came from the server for {:.0f} s",
                                             std::chrono::duration<double>(request.silence).count()));
      }
      wait = std::min(wait, left + std::chrono::milliseconds(1));
    }
    if (channel->status()) {
      wait = std::min(wait, rest());
    }
    std::array<pollfd, 1> also{{{cancel.fd(), POLLIN, 0}}};
    connection.pump(wait, also);
    cancel.check();
    if (received > request.max_output) {
      throw Error("too much output",
                  fmt::format("the server sent more than {} MB, and the end is not in sight",
                              request.max_output >> 20U),
                  "look at what the login shell's start files print");
    }
  }
  if (!channel->status()) {
    throw Error("connection lost", "the server closed it before the command ended");
  }
  result.status = *channel->status();
  return result;
}

}  // namespace

std::unique_ptr<Channel> Connection::open_on_terminal(const std::string&, const TerminalRequest&, Sink) {
  throw Error("cannot open a terminal", "this connection has none");
}

ExecResult Connection::exec(const ExecRequest& request, const Cancel& cancel) {
  const Stopwatch watch;
  log_info(server(), "{}: begins, {} bytes of input", request.what, request.input.size());
  std::size_t received = 0;
  try {
    ExecResult result = run_to_end(*this, request, cancel, received);
    log_info(server(), "{}: {} after {}, {} bytes of output", request.what, result.status.describe(),
             watch.text(), received);
    return result;
  } catch (...) {
    log_info(server(), "{}: given up after {}", request.what, watch.text());
    throw;
  }
}

}  // namespace remote::ssh
