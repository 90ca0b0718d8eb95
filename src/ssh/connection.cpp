#include "ssh/connection.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/log.hpp"

namespace remote::ssh {
namespace {

// Tells the log of an exec: its beginning, and its end in whatever way.
class ExecLog {
 public:
  ExecLog(std::string_view server, const ExecRequest& request) : server_(server), request_(request) {
    log_info(server_, "{}: begins, {} bytes of input", request_.what, request_.input.size());
  }
  ~ExecLog() {
    if (!ended_) {
      log_info(server_, "{}: given up after {}", request_.what, watch_.text());
    }
  }
  ExecLog(const ExecLog&) = delete;
  ExecLog& operator=(const ExecLog&) = delete;

  void ended(const ExitStatus& status, std::size_t received) {
    ended_ = true;
    log_info(server_, "{}: {} after {}, {} bytes of output", request_.what, status.describe(), watch_.text(),
             received);
  }

 private:
  std::string_view server_;
  const ExecRequest& request_;
  Stopwatch watch_;
  bool ended_ = false;
};

}  // namespace

ExecResult Connection::exec(const ExecRequest& request, const Cancel& cancel) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + request.timeout;
  ExecResult result;
  std::size_t received = 0;
  const Sink sink = [&](Stream stream, std::string_view data) {
    received += data.size();
    if (received > request.max_output) {
      return;
    }
    if (request.sink) {
      request.sink(stream, data);
    } else {
      (stream == Stream::out ? result.out : result.err).append(data);
    }
  };
  ExecLog told(server(), request);
  const std::unique_ptr<Channel> channel = open(request.command, sink);
  std::string_view input = request.input;
  bool input_open = true;
  while (!channel->finished()) {
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
    std::array<pollfd, 1> also{{{cancel.fd(), POLLIN, 0}}};
    pump(wait, also);
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
  told.ended(result.status, received);
  return result;
}

}  // namespace remote::ssh
