#include "ssh/pump.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/login_shell.hpp"
#include "base/strings.hpp"
#include "ssh/path.hpp"

namespace remote::ssh {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds quiet_time{1000};
constexpr milliseconds short_time{50};
// As much as a socket pair with rsync's defaults can provide at once.
constexpr std::size_t piece = std::size_t{256} << 10U;
// How much may be queued here for a slow reader before the server has to wait too.
constexpr std::size_t backlog_limit = std::size_t{256} << 10U;

// Multiples of Connection::answer_time(). A startup file may take longer than that as long as it prints
// something, but not forever. Installing the program may take ten minutes on a slow link.
constexpr int most_greeting = 12;
constexpr int most_installing = 60;

std::string describe_wait(std::string_view what, milliseconds time) {
  return fmt::format("{} {:.0f} s", what, std::chrono::duration<double>(time).count());
}

// Returns an error if packets were lost since the last output.
std::optional<Error> find_lost_packets(Connection& connection, std::string_view what, milliseconds time) {
  const std::string why = connection.explain_silence();
  return why.empty() ? std::nullopt
                     : std::optional(Error("no answer", describe_wait(what, time) + ": " + why, path_hint)
                                         .because(Cause::timeout));
}

}  // namespace

void Pump::wait(milliseconds limit, std::span<pollfd> also) {
  const auto begin = Flow::Clock::now();
  std::vector<pollfd> fds{{cancel_.fd(), POLLIN, 0}};
  fds.insert(fds.end(), also.begin(), also.end());
  for (Flow* flow : flows_) {
    flow->feed();
    limit = std::min(limit, flow->left().value_or(limit));
    limit =
        std::min(limit, std::max(std::chrono::ceil<milliseconds>(flow->answer_due() - begin), short_time));
    const bool reads = flow->from_ >= 0 && flow->unsent_.empty() && flow->channel_->writable() > 0;
    const bool writes = !flow->backlog_.empty();
    flow->slots_ = reads || writes ? fds.size() : 0;
    if (reads || writes) {
      fds.push_back({reads ? flow->from_ : -1, POLLIN, 0});
      fds.push_back({writes ? flow->to_ : -1, POLLOUT, 0});
    }
  }
  connection_.pump(limit, fds);
  cancel_.check();
  std::copy_n(fds.begin() + 1, also.size(), also.begin());
  for (Flow* flow : flows_) {
    flow->check_answer(begin);  // data that arrived meanwhile was read once more
    const std::size_t at = std::exchange(flow->slots_, 0);
    if (at > 0 && fds[at].revents != 0) {
      flow->read(buffer_);
    }
    if (at > 0 && fds[at + 1].revents != 0) {
      flow->flush();
    }
  }
}

Flow::Flow(Pump& pump, const Open& open, Sink sink) : pump_(pump) {
  channel_ = open([this, sink = std::move(sink)](Stream stream, std::string_view data) {
    end_.heard();
    if (answered_ && !answered_()) {
      append_end(unanswered_, data);
    }
    sink(stream, data);
    end_.heard();  // opening may have taken long, and data that arrived meanwhile has not been read yet
  });
  pump.flows_.push_back(this);
}

Flow::Flow(Pump& pump, const std::string& command, Sink sink)
    : Flow(
          pump, [&](Sink to) { return pump.connection().open(command, std::move(to)); }, std::move(sink)) {}

Flow::~Flow() {
  std::erase(pump_.flows_, this);
}

void Flow::send(std::string_view data) {
  unsent_ += data;
  feed();
}

void Flow::end_input() {
  input_ends_ = true;
  feed();
}

void Flow::send_from(int fd, std::function<void(char)> at_end) {
  from_ = fd;
  at_end_ = std::move(at_end);
}

void Flow::feed() {
  // Fills the channel completely, because it does not report free space unless it was full before.
  for (std::size_t count = 0; (count = std::min(unsent_.size(), channel_->writable())) > 0;) {
    write(std::string_view(unsent_).substr(0, count));
    unsent_.erase(0, count);
  }
  if (unsent_.empty() && std::exchange(input_ends_, false)) {
    channel_->close_input();
  }
}

void Flow::write(std::string_view data) {
  channel_->write(data);
  sent_ += data.size();
}

void Flow::read(std::string& buffer) {
  buffer.resize(piece);
  const std::size_t most = std::min(buffer.size(), channel_->writable());
  if (most == 0) {
    return;  // the output that was handed over meanwhile has been handled
  }
  const ssize_t count = uninterrupted([&] { return ::read(from_, buffer.data(), most); });
  if (count > 0) {
    last_ = buffer[static_cast<std::size_t>(count) - 1];
    write(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)));
  } else if (count == 0 || !would_block()) {
    from_ = -1;
    at_end_(last_);
  }
}

void Flow::pass_on(std::string_view data) {
  backlog_ += data;
  flush();
}

void Flow::flush() {
  std::string_view rest = backlog_;
  while (!rest.empty() && !broken_) {
    const ssize_t count = uninterrupted([&] { return ::write(to_, rest.data(), rest.size()); });
    if (count >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
    } else if (would_block()) {
      break;
    } else {
      broken_ = true;
    }
  }
  backlog_.erase(0, broken_ ? std::string::npos : backlog_.size() - rest.size());
  if (backlog_.size() > backlog_limit || backlog_.size() <= backlog_limit / 2) {
    channel_->pause(backlog_.size() > backlog_limit);
  }
}

std::optional<milliseconds> Flow::left() {
  return backlog_.empty() ? end_.left(*channel_, complete_ && complete_() ? short_time : quiet_time)
                          : std::nullopt;
}

bool Flow::owes_answer() const {
  return answered_ && !answered_() && !channel_->status() && !channel_->finished();
}

Flow::Clock::time_point Flow::answer_due() const {
  if (!owes_answer()) {
    return Clock::time_point::max();
  }
  const milliseconds time = pump_.connection().answer_time();
  const int most = installing_ && installing_() ? most_installing : most_greeting;
  return std::min(heard() + time, opened_ + most * time);
}

void Flow::check_answer(Clock::time_point now) const {
  if (answer_due() > now) {
    return;
  }
  const milliseconds time = pump_.connection().answer_time();
  if (heard() + time <= now) {
    const auto lost =
        unanswered_.empty() ? find_lost_packets(pump_.connection(), "nothing came for", time) : std::nullopt;
    throw lost.value_or(login_shell_waits(unanswered_, time));
  }
  const auto whole = std::chrono::floor<std::chrono::seconds>(now - opened_);
  throw Error("no answer", fmt::format("its login shell printed for {} s, but ran no command", whole.count()),
              "log in with ssh: a start file of the shell may print without end")
      .because(Cause::timeout);
}

bool Flow::over() {
  return backlog_.empty() && (channel_->finished() || left() == milliseconds(0));
}

ExitStatus Flow::ended() const {
  if (const auto status = channel_->status()) {
    return *status;
  }
  throw Error("connection lost", "the server closed it before the command ended",
              "check the network and the server, then run the command again")
      .because(Cause::unreachable);
}

milliseconds time_left(Connection& connection, Flow::Clock::time_point begin, milliseconds limit,
                       std::string_view what, std::string_view hint) {
  const auto left = std::chrono::ceil<milliseconds>(begin + limit - Flow::Clock::now());
  if (limit.count() == 0 || left.count() > 0) {
    return limit.count() == 0 ? milliseconds::max() : left;
  }
  throw find_lost_packets(connection, what, limit)
      .value_or(Error("no answer", describe_wait(what, limit), hint).because(Cause::timeout));
}

}  // namespace remote::ssh
