#include "ssh/jump.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::ssh {
namespace {

constexpr std::size_t piece = std::size_t{64} << 10U;
// So much may wait for a reader before the jump host is told to wait too.
constexpr std::size_t backlog_limit = std::size_t{256} << 10U;
std::pair<UniqueFd, UniqueFd> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    throw Error("cannot connect", std::strerror(errno), "raise `ulimit -n`");
  }
  for (const int fd : ends) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

std::string Tunnel::refusal() const {
  const std::lock_guard lock(verdict_->mutex);
  return verdict_->refusal;
}

// One tunnel as the bastion's thread sees it: a local socket and a channel, and the bytes between them.
struct Bastion::Way {
  std::string host;
  int port = 0;
  UniqueFd fd;
  std::shared_ptr<Tunnel::Verdict> verdict;
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
      const ssize_t count = ::send(fd.get(), backlog.data(), backlog.size(), 0);
      if (count < 0) {
        if (errno == EINTR) {
          continue;
        }
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
    std::array<char, piece> buffer{};
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
      const std::lock_guard lock(verdict->mutex);
      verdict->refusal = channel->refusal();
      return true;
    }
    return broken || (channel->output_ended() && backlog.empty());
  }
};

Bastion::Bastion(std::unique_ptr<Session> session, std::string name)
    : name_(std::move(name)), session_(std::move(session)) {
  std::tie(wake_read_, wake_write_) = socket_pair();
  ::fcntl(wake_read_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(wake_write_.get(), F_SETFL, O_NONBLOCK);
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
  [[maybe_unused]] const auto sent = ::send(wake_write_.get(), &byte, 1, 0);
}

std::shared_ptr<Tunnel> Bastion::open(const std::string& host, int port) {
  auto tunnel = std::make_shared<Tunnel>();
  auto [ours, theirs] = socket_pair();
  ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  tunnel->fd_ = std::move(ours);
  tunnel->bastion_ = shared_from_this();
  auto way = std::make_unique<Way>();
  way->host = host;
  way->port = port;
  way->fd = std::move(theirs);
  way->verdict = tunnel->verdict_;
  {
    const std::lock_guard lock(mutex_);
    if (!dead_) {
      requests_.push_back(std::move(way));
    }
  }
  wake();
  return tunnel;
}

void Bastion::take_requests() {
  std::array<char, 64> bytes{};
  while (::recv(wake_read_.get(), bytes.data(), bytes.size(), 0) > 0) {
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
  fds.push_back({wake_read_.get(), POLLIN, 0});
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

struct ProxyProcess::Process {
  UniqueFd errors;  // a file without a name
  std::optional<Subprocess> child;
};

ProxyProcess::ProxyProcess(const std::string& command) : process_(std::make_unique<Process>()) {
  auto [ours, theirs] = socket_pair();
  std::FILE* file = std::tmpfile();
  if (file != nullptr) {
    process_->errors.reset(::dup(::fileno(file)));
    std::fclose(file);
    ::fcntl(process_->errors.get(), F_SETFD, FD_CLOEXEC);
  }
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", "exec " + command};
  spec.pass_fds = {{theirs.get(), 0}, {theirs.get(), 1}};
  if (process_->errors) {
    spec.pass_fds.emplace_back(process_->errors.get(), 2);
  }
  process_->child.emplace(spec);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  fd_ = std::move(ours);
}

ProxyProcess::~ProxyProcess() = default;

std::string ProxyProcess::complaint() const {
  std::array<char, 4096> text{};
  const off_t size = process_->errors ? ::lseek(process_->errors.get(), 0, SEEK_END) : 0;
  const off_t start = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
  const ssize_t count = size > 0 ? ::pread(process_->errors.get(), text.data(), text.size(), start) : 0;
  return std::string(
      trim(last_lines({text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, count))}, 3)));
}

}  // namespace remote::ssh
