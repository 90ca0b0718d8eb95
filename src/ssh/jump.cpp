#include "ssh/jump.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"

namespace remote::ssh {
namespace {

constexpr std::size_t most_at_once = std::size_t{64} << 10U;
// So much may wait for a reader before the jump host is told to wait too.
constexpr std::size_t backlog_limit = std::size_t{256} << 10U;

}  // namespace

std::string JumpSocket::refusal() const {
  const std::lock_guard lock(refusal_->mutex);
  return refusal_->reason;
}

// One JumpSocket as the bastion's thread sees it: a local socket and a channel, and the bytes between them.
struct Bastion::Way {
  std::string host;
  int port = 0;
  UniqueFd fd;
  std::shared_ptr<JumpSocket::Refusal> refused;
  std::unique_ptr<SessionChannel> channel;
  std::string backlog;  // from the server, not yet taken by the local reader
  bool broken = false;

  void open(Session& session) {
    channel = session.open_forward(host, port, [this](Stream, std::string_view data) {
      backlog.append(data);
      flush();
      channel->pause(backlog.size() > backlog_limit);
    });
  }

  void flush() {
    while (!backlog.empty()) {
      const ssize_t count =
          uninterrupted([&] { return ::send(fd.get(), backlog.data(), backlog.size(), 0); });
      if (count < 0) {
        broken = broken || (errno != EAGAIN && errno != EWOULDBLOCK);
        break;
      }
      backlog.erase(0, static_cast<std::size_t>(count));
    }
    if (broken) {
      backlog.clear();
    }
  }

  short wanted() const {
    const bool read = channel->writable() > 0;
    return static_cast<short>((read ? POLLIN : 0) | (backlog.empty() ? 0 : POLLOUT));
  }

  void serve(short revents) {
    if ((revents & POLLOUT) != 0) {
      flush();
      if (backlog.size() <= backlog_limit / 2) {
        channel->pause(false);
      }
    }
    if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
      return;
    }
    std::array<char, most_at_once> buffer{};
    while (channel->writable() > 0) {
      const ssize_t count = ::recv(fd.get(), buffer.data(), std::min(buffer.size(), channel->writable()), 0);
      if (count > 0) {
        channel->write({buffer.data(), static_cast<std::size_t>(count)});
        continue;
      }
      // The session at the other end is closed (0), or has no more for now.
      broken = broken || count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
      break;
    }
    if (channel->writable() == 0 && (revents & POLLERR) != 0) {
      broken = true;
    }
  }

  // True when there is nothing more to carry. A refusal is told to whom it concerns first.
  bool over() {
    if (!channel->opening() && !channel->refusal().empty()) {
      const std::lock_guard lock(refused->mutex);
      refused->reason = channel->refusal();
      return true;
    }
    return broken || (channel->output_ended() && backlog.empty());
  }
};

Bastion::Bastion(std::unique_ptr<Session> session, std::string name)
    : name_(std::move(name)), session_(std::move(session)) {
  ::fcntl(wake_.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(wake_.write.get(), F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

Bastion::~Bastion() {
  stop_ = true;
  wake();
  thread_.join();
}

void Bastion::wake() const {
  const char byte = 1;
  // Full means that it is awake already.
  [[maybe_unused]] const auto sent = ::write(wake_.write.get(), &byte, 1);
}

std::shared_ptr<JumpSocket> Bastion::open(const std::string& host, int port) {
  auto socket = std::make_shared<JumpSocket>();
  auto [ours, theirs] = socket_pair();
  ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  socket->fd_ = std::move(ours);
  socket->bastion_ = shared_from_this();
  auto way = std::make_unique<Way>();
  way->host = host;
  way->port = port;
  way->fd = std::move(theirs);
  way->refused = socket->refusal_;
  {
    const std::lock_guard lock(mutex_);
    if (!dead_) {
      requests_.push_back(std::move(way));
    }
  }
  wake();
  return socket;
}

void Bastion::take_requests() {
  std::array<char, 64> bytes{};
  while (::read(wake_.read.get(), bytes.data(), bytes.size()) > 0) {
  }
  std::vector<std::unique_ptr<Way>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests = std::exchange(requests_, {});
  }
  for (auto& way : requests) {
    way->open(*session_);
    ways_.push_back(std::move(way));
  }
}

void Bastion::run() {
  try {
    while (!stop_) {
      serve();
    }
  } catch (const std::exception&) {
    // The link to the jump host is gone; the sockets close below, and the sessions through it notice.
  }
  {
    const std::lock_guard lock(mutex_);
    dead_ = true;
    requests_.clear();
  }
  ways_.clear();
  session_.reset();
}

void Bastion::serve() {
  std::vector<pollfd> fds;
  fds.reserve(ways_.size() + 1);
  fds.push_back({wake_.read.get(), POLLIN, 0});
  for (const auto& way : ways_) {
    const short wanted = way->wanted();
    // With nothing wanted, poll would still report the other end's hang-up, again and again.
    fds.push_back({wanted != 0 ? way->fd.get() : -1, wanted, 0});
  }
  session_->pump(std::chrono::seconds(60), fds);
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    ways_[i]->serve(fds[i + 1].revents);
  }
  std::erase_if(ways_, [](const auto& way) { return way->over(); });
  if (fds[0].revents != 0) {
    take_requests();
  }
}

std::shared_ptr<Bastion> BastionPool::get(const std::string& key, const Cancel& cancel,
                                          const std::function<std::shared_ptr<Bastion>()>& make) {
  std::promise<std::shared_ptr<Bastion>> promise;
  std::shared_future<std::shared_ptr<Bastion>> future;
  bool mine = false;
  {
    const std::lock_guard lock(mutex_);
    auto& known = bastions_[key];
    const bool ready = known.valid() && known.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (!known.valid() || (ready && !known.get()->alive())) {
      known = promise.get_future().share();
      mine = true;
    }
    future = known;
  }
  if (mine) {
    try {
      promise.set_value(make());
    } catch (...) {
      {
        // Who waits now shares this failure; who comes later tries anew.
        const std::lock_guard lock(mutex_);
        bastions_.erase(key);
      }
      promise.set_exception(std::current_exception());
    }
  }
  while (future.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    cancel.check();
  }
  return future.get();
}

ProxyCommand::ProxyCommand(const std::string& command) : errors_(std::tmpfile(), std::fclose) {
  auto [ours, theirs] = socket_pair();
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", "exec " + command};
  spec.pass_fds = {{theirs.get(), 0}, {theirs.get(), 1}};
  if (errors_) {
    ::fcntl(::fileno(errors_.get()), F_SETFD, FD_CLOEXEC);
    spec.pass_fds.emplace_back(::fileno(errors_.get()), 2);
  }
  child_.emplace(spec);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  fd_ = std::move(ours);
}

std::string ProxyCommand::complaint() const {
  if (!errors_) {
    return {};
  }
  std::array<char, 4096> text{};
  const int fd = ::fileno(errors_.get());
  const off_t start = std::max<off_t>(0, ::lseek(fd, 0, SEEK_END) - static_cast<off_t>(text.size()));
  const ssize_t count = std::max<ssize_t>(0, ::pread(fd, text.data(), text.size(), start));
  return last_lines(trim({text.data(), static_cast<std::size_t>(count)}), 3);
}

}  // namespace remote::ssh
