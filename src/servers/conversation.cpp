#include "servers/conversation.hpp"

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
    : connection_(connection), what_(std::move(what)), reader_(reader), cancel_(cancel) {
  constexpr std::size_t most = std::size_t{8} << 20U;
  log_info(connection_.server(), "{}: begins", what_);
  channel_ = ssh::open_program(connection_, request, [this](ssh::Stream stream, std::string_view data) {
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
  log_info(connection_.server(), "{}: over, {} bytes of output", what_, received_);
}

bool Conversation::serve(const std::function<bool()>& done, std::chrono::milliseconds limit, int wake) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + limit;
  while (true) {
    const std::size_t count = std::min(unsent_.size(), channel_->writable());
    if (count > 0) {
      channel_->write(std::string_view(unsent_).substr(0, count));
      unsent_.erase(0, count);
    }
    reader_.finish();  // what follows a wrong line is not read: waiting for it would end by the limit
    if (done()) {
      return true;
    }
    if (channel_->finished()) {
      return false;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    if (left.count() <= 0) {
      throw Error("no answer",
                  fmt::format("the {} did not come so far within {} s", what_,
                              std::chrono::duration_cast<std::chrono::seconds>(limit).count()),
                  "it may be busy, or out of memory; try again");
    }
    std::array<pollfd, 2> also{{{cancel_.fd(), POLLIN, 0}, {wake, POLLIN, 0}}};
    connection_.pump(left, std::span(also).first(wake < 0 ? 1 : 2));
    cancel_.check();
  }
}

void Conversation::finish(std::chrono::milliseconds limit) {
  serve([this] { return reader_.closed(); }, limit);
  const auto status = channel_->status();
  std::string ended = status ? status->describe() : std::string();
  if (const std::string last = last_lines(errors_, 1); !last.empty()) {
    ended += (ended.empty() ? "" : ": ") + last;
  }
  reader_.finish_with_closing_line(ended);
}

Meeting::Meeting(std::size_t members) : members_(members) {
  for (std::size_t i = 0; i < members; ++i) {
    pipes_.push_back(make_pipe());
    for (const int fd : {pipes_.back().read.get(), pipes_.back().write.get()}) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
  }
}

void Meeting::check() {
  if (arrived_ < members_ || members_ == 0) {
    return;
  }
  arrived_ = 0;
  ++round_;
  for (const Pipe& pipe : pipes_) {
    [[maybe_unused]] const auto sent = ::write(pipe.write.get(), "", 1);  // full: it is readable already
  }
}

void Meeting::leave(std::size_t round) {
  const std::lock_guard lock(mutex_);
  if (round > round_) {
    --arrived_;  // it came and did not wait for the others
  }
  --members_;
  check();
}

void Meeting::Place::arrive() {
  const std::lock_guard lock(meeting_.mutex_);
  ++round_;
  ++meeting_.arrived_;
  meeting_.check();
}

bool Meeting::Place::complete() {
  const std::lock_guard lock(meeting_.mutex_);
  std::array<char, 64> waste{};
  while (::read(wake(), waste.data(), waste.size()) > 0) {
  }
  return meeting_.round_ >= round_;
}

}  // namespace remote::servers
