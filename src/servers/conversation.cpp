#include "servers/conversation.hpp"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "ssh/program_channel.hpp"

namespace remote::servers {

Conversation::Conversation(ssh::Connection& connection, std::string what, const std::string& request,
                           AnswerReader& reader, const Cancel& cancel)
    : pump_(connection, cancel), what_(std::move(what)), reader_(reader) {
  constexpr std::size_t most = std::size_t{8} << 20U;
  log_info(pump_.connection().server(), "{}: begins", what_);
  flow_ = ssh::open_program(pump_, request, [this](ssh::Stream stream, std::string_view data) {
    received_ += data.size();
    if (received_ > most) {
      throw Error("too much output", fmt::format("the server sent more than {} MB", most >> 20U))
          .mended_by(Remedy::tell_more);
    }
    if (stream == ssh::Stream::out) {
      reader_.add(data);
    } else {
      append_end(errors_, data);
    }
  });
}

Conversation::~Conversation() {
  log_info(pump_.connection().server(), "{}: over, {} bytes of output", what_, received_);
}

bool Conversation::serve(const std::function<bool()>& done, std::chrono::milliseconds limit,
                         std::chrono::milliseconds silence, int wake) {
  const auto begin = ssh::Flow::Clock::now();
  const std::string what = "the " + what_ + " did not come so far within";
  while (true) {
    reader_.finish();  // what follows a wrong line is not read: waiting for it would end by the limit
    if (done()) {
      return true;
    }
    if (flow_->channel().finished()) {
      return false;
    }
    std::array<pollfd, 1> also{{{wake, POLLIN, 0}}};
    const std::string hint = "it may be busy, or out of memory; try again";
    const auto heard = std::max(begin, flow_->heard());
    pump_.wait(std::min(ssh::time_left(begin, limit, what, hint),
                        ssh::time_left(heard, silence, "nothing came from the server for", hint)),
               also);
  }
}

void Conversation::finish(std::chrono::milliseconds limit) {
  serve([this] { return reader_.closed(); }, limit);
  const auto status = flow_->channel().status();
  std::string ended = status ? status->describe() : std::string();
  if (const std::string last = last_lines(errors_, 1); !last.empty()) {
    ended += (ended.empty() ? "" : ": ") + last;
  }
  reader_.finish_with_closing_line(ended);
}

Barrier::Barrier(std::size_t members) : members_(members) {
  for (std::size_t i = 0; i < members; ++i) {
    pipes_.push_back(make_pipe());
    for (const int fd : {pipes_.back().read.get(), pipes_.back().write.get()}) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
  }
}

void Barrier::check() {
  if (arrived_ < members_ || members_ == 0) {
    return;
  }
  arrived_ = 0;
  ++round_;
  for (const Pipe& pipe : pipes_) {
    [[maybe_unused]] const auto sent = ::write(pipe.write.get(), "", 1);  // full: it is readable already
  }
}

void Barrier::leave(std::size_t round) {
  const std::lock_guard lock(mutex_);
  if (round > round_) {
    --arrived_;  // it came and did not wait for the others
  }
  --members_;
  check();
}

void Barrier::Member::arrive() {
  const std::lock_guard lock(barrier_.mutex_);
  ++round_;
  ++barrier_.arrived_;
  barrier_.check();
}

bool Barrier::Member::complete() {
  const std::lock_guard lock(barrier_.mutex_);
  std::array<char, 64> waste{};
  while (::read(wake(), waste.data(), waste.size()) > 0) {
  }
  return barrier_.round_ >= round_;
}

}  // namespace remote::servers
