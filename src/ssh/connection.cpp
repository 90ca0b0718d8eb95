#include "ssh/connection.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"

namespace remote::ssh {
namespace {

// See OutputEnd; the second where nothing more is expected.
constexpr std::chrono::milliseconds quiet_time{1000};
constexpr std::chrono::milliseconds short_time{50};

// Runs the command; `received` counts the bytes of its output.
ExecResult run_to_end(Connection& connection, const ExecRequest& request, const Cancel& cancel,
                      std::size_t& received) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + request.timeout;
  ExecResult result;
  OutputEnd end;
  const Sink sink = [&](Stream stream, std::string_view data) {
    received += data.size();
    end.heard();
    if (received > request.max_output) {
      return;
    }
    if (request.sink) {
      request.sink(stream, data);
    } else {
      (stream == Stream::out ? result.out : result.err).append(data);
    }
    end.heard();  // the sink may have taken long, and what came meanwhile is still to be read
  };
  const std::unique_ptr<Channel> channel = connection.open(request.command, sink);
  std::string_view input = request.input;
  bool input_open = true;
  const auto rest = [&] {
    return end.left(*channel, request.complete && request.complete() ? short_time : quiet_time);
  };
  while (!channel->finished() && rest() != std::chrono::milliseconds(0)) {
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
        throw Error("no answer",
                    fmt::format("the server did not finish within {:.0f} s",
                                std::chrono::duration<double>(request.timeout).count()),
                    "it may be busy; try again")
            .because(Cause::timeout);
      }
      wait = std::min(wait, left + std::chrono::milliseconds(1));
    }
    if (request.silence.count() > 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end.last() + request.silence - clock::now());
      if (left.count() <= 0) {
        throw Error("no answer",
                    fmt::format("nothing came from the server for {:.0f} s",
                                std::chrono::duration<double>(request.silence).count()),
                    "it may be busy, or the network may have gone; try again")
            .because(Cause::timeout);
      }
      wait = std::min(wait, left + std::chrono::milliseconds(1));
    }
    wait = std::min(wait, rest().value_or(wait));
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
    throw Error("connection lost", "the server closed it before the command ended",
                "check the network and the server, then run the command again")
        .because(Cause::unreachable);
  }
  result.status = *channel->status();
  return result;
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): as those take it that have terminals
std::unique_ptr<Channel> Connection::open_on_terminal(const std::string&, const TerminalRequest&, Sink) {
  throw Error("cannot open a terminal", "this connection has none");
}

std::optional<std::chrono::milliseconds> OutputEnd::left(const Channel& channel,
                                                         std::chrono::milliseconds quiet_time) {
  if (!channel.status()) {
    return std::nullopt;
  }
  if (!ended_) {
    ended_ = true;
    heard();
  }
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(heard_ + quiet_time - Clock::now()),
                  std::chrono::milliseconds(0));
}

ExecResult Connection::exec(const ExecRequest& request, const Cancel& cancel) {
  struct Watch {
    Connection& connection;
    bool on;
    explicit Watch(Connection& given, bool wanted) : connection(given), on(wanted) { set(true); }
    ~Watch() { set(false); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    void set(bool begin) const {
      if (on) {
        connection.be_watchful(begin);
      }
    }
  } const watch_link(*this, request.watchful);
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
