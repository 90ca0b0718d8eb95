#include "ssh/connection.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"
#include "ssh/pump.hpp"

namespace remote::ssh {
namespace {

// Runs the command. `received` counts the bytes of its output.
ExecResult run_to_end(Connection& connection, const ExecRequest& request, const Cancel& cancel,
                      std::size_t& received) {
  const auto begin = Flow::Clock::now();
  ExecResult result;
  const Sink sink = [&](Stream stream, std::string_view data) {
    received += data.size();
    if (received > request.max_output) {
      throw Error(
          "too much output",
          fmt::format("the server sent more than {} MB and has not finished", request.max_output >> 20U),
          "check what the login shell's start files print");
    }
    if (request.sink) {
      request.sink(stream, data);
    } else {
      (stream == Stream::out ? result.out : result.err).append(data);
    }
  };
  Pump pump(connection, cancel);
  Flow flow(pump, request.command, sink);
  flow.complete_when(request.complete);
  flow.send(request.input);
  flow.end_input();
  while (!flow.over()) {
    pump.wait(std::min({std::chrono::milliseconds(60000),
                        time_left(connection, begin, request.timeout, "the server did not finish within",
                                  "it may be busy; try again")}));
  }
  result.status = flow.ended();
  return result;
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): same signature as overrides that can forward
std::unique_ptr<Channel> Connection::open_tcp(const std::string&, int, Sink) {
  throw Error("cannot forward a port", "this connection has no forwarding").mended_by(Remedy::report_bug);
}

void Connection::listen_tcp(int) {
  throw Error("cannot forward a port to this machine", "this connection has no reverse forwarding")
      .mended_by(Remedy::report_bug);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): same signature as overrides that can forward
std::unique_ptr<Channel> Connection::accept_tcp(Sink) {
  throw Error("cannot forward a port to this machine", "no connection waits").mended_by(Remedy::report_bug);
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
