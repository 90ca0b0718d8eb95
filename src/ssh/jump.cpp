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
std::string JumpSocket::refusal() const {
  const std::lock_guard lock(refusal_->mutex);
  return refusal_->reason;
}

// The bastion thread's side of a JumpSocket: a local socket, a channel, and the bytes between them.
struct Bastion::Way {
  std::string host;
  int port = 0;
  UniqueFd fd;
  std::shared_ptr<JumpSocket::Refusal> refused;
  std::unique_ptr<Flow> flow;
  bool ended = false;  // the session on this machine has closed its socket

  void open(Pump& pump, Session& session) {
    flow = std::make_unique<Flow>(
        pump, [&](Sink sink) { return session.open_tcp(host, port, std::move(sink)); },
        [this](Stream, std::string_view data) { flow->pass_on(data); });
    flow->pass_on_to(fd.get());
    flow->send_from(fd.get(), [this](char /*last*/) { ended = true; });
  }

  // Returns true when no more data has to be carried. Passes a refusal to the JumpSocket first.
  bool over() {
    const Channel& channel = flow->channel();
    if (!channel.opening() && !channel.refusal().empty()) {
      const std::lock_guard lock(refused->mutex);
      refused->reason = channel.refusal();
      return true;
    }
    return ended || flow->swallows() || (channel.output_ended() && flow->passed_on());
  }
};

Bastion::Bastion(std::unique_ptr<Session> session, std::string name)
    : name_(std::move(name)), session_(std::move(session)) {
  ::fcntl(wake_.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(wake_.write.get(), F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

Bastion::~Bastion() {
  stop_.cancel();
  thread_.join();
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
  [[maybe_unused]] const auto sent =
      ::write(wake_.write.get(), "", 1);  // if the pipe is full, the thread is already awake
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
    way->open(pump_, *session_);
    ways_.push_back(std::move(way));
  }
}

void Bastion::run() {
  try {
    for (;;) {
      serve();
    }
  } catch (const std::exception&) {
    // The bastion is being destroyed, or the connection to the jump host is lost. The sockets are closed
    // below, which the sessions through it notice.
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
  // Check before waiting, because a channel may have been refused while it was opened.
  std::erase_if(ways_, [](const auto& way) { return way->over(); });
  std::array<pollfd, 1> fds{{{wake_.read.get(), POLLIN, 0}}};
  pump_.wait(std::chrono::seconds(60), fds);
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
        // Threads that are waiting now share this failure; later callers try again.
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
