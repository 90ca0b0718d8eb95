#include "ssh/mux_socket.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ownership.hpp"
#include "ssh/local_socket.hpp"

namespace remote::ssh::mux {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* other_way_hint = "close it with `ssh -O exit`, or set `connection: libssh`";

[[noreturn]] void fail(const fs::path& path, std::string_view why) {
  throw Error(fmt::format("cannot use the control socket {}", path.string()), why, other_way_hint);
}

// A user who can create a socket there could see all data that goes through it.
void check_owner(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    fail(path, std::generic_category().message(errno));
  }
  if (!S_ISSOCK(info.st_mode) || info.st_uid != ::geteuid()) {
    fail(path, S_ISSOCK(info.st_mode) ? "it belongs to another user" : "it is not a socket");
  }
  if (const std::string why = others_hand(path.parent_path()); !why.empty()) {
    fail(path, "of its folder: " + why);
  }
}

// Waits for events. Returns false after the deadline.
bool ready(int fd, short events, Clock::time_point deadline, const Cancel& cancel) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    pollfd slots[] = {{fd, events, 0}, {cancel.fd(), POLLIN, 0}};
    const int count = ::poll(slots, 2, static_cast<int>(left));
    cancel.check();
    if (count > 0 && slots[0].revents != 0) {
      return true;
    }
  }
}

// Sends a descriptor with one byte, as OpenSSH expects it.
ssize_t send_descriptor(int fd, int descriptor) {
  char byte = '\0';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(fd, &message, 0);
}

}  // namespace

ControlSocket::ControlSocket(const fs::path& path) {
  check_owner(path);
  fd_ = connect_local(path.string(), false);
  if (!fd_) {
    fail(path, std::generic_category().message(errno));
  }
  send(hello());
}

void ControlSocket::send(std::string_view message, std::initializer_list<int> descriptors) {
  const auto deadline = Clock::now() + local_limit;
  const auto again = [&](const auto& call) {
    for (;;) {
      const ssize_t count = uninterrupted(call);
      if (count > 0) {
        return static_cast<std::size_t>(count);
      }
      if (!would_block() || !ready(fd_.get(), POLLOUT, deadline, Cancel())) {
        throw Error("cannot use the control socket", std::generic_category().message(errno), other_way_hint);
      }
    }
  };
  while (!message.empty()) {
    message.remove_prefix(again([&] { return ::write(fd_.get(), message.data(), message.size()); }));
  }
  for (const int descriptor : descriptors) {
    again([&] { return send_descriptor(fd_.get(), descriptor); });
  }
}

std::optional<Message> ControlSocket::receive() {
  for (;;) {
    while (auto message = take_message(data_)) {
      if (message->kind != Kind::hello) {
        return message;
      }
      if (greeted_ || message->number != version) {
        throw Error("cannot use the control socket",
                    fmt::format("the master speaks version {} of its protocol", message->number),
                    other_way_hint);
      }
      greeted_ = true;
    }
    char buffer[4096];
    const ssize_t count = uninterrupted([&] { return ::read(fd_.get(), buffer, sizeof buffer); });
    if (count <= 0) {
      ended_ = count == 0 || !would_block();
      return std::nullopt;
    }
    data_.append(buffer, static_cast<std::size_t>(count));
  }
}

std::optional<Message> ControlSocket::wait(std::chrono::milliseconds limit, const Cancel& cancel) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    auto message = receive();
    if (message || ended_ || !ready(fd_.get(), POLLIN, deadline, cancel)) {
      return message;
    }
  }
}

std::optional<std::uint32_t> ask_alive(ControlSocket& socket, const Cancel& cancel) {
  constexpr std::uint32_t request = 1;
  socket.send(alive_check(request));
  const auto answer = socket.wait(local_limit, cancel);
  return answer && answer->kind == Kind::alive && answer->about == request ? std::optional(answer->number)
                                                                           : std::nullopt;
}

bool answers(const fs::path& path, const Cancel& cancel) {
  try {
    ControlSocket socket(path);
    return ask_alive(socket, cancel).has_value();
  } catch (const Error&) {
    return false;
  }
}

bool end_master(const fs::path& path) {
  try {
    ControlSocket socket(path);
    socket.send(terminate(1));
    while (socket.wait(local_limit)) {  // the master may exit before it answers
    }
    return socket.ended();
  } catch (const Error&) {
    return false;
  }
}

void retire_master(const fs::path& path) {
  try {
    ControlSocket socket(path);
    socket.send(stop_listening(1));
    socket.wait(local_limit);
  } catch (const Error&) {  // it has already exited
  }
}

}  // namespace remote::ssh::mux
