#include "ssh/rsync_pipe.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sigpipe.hpp"
#include "base/strings.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace remote::ssh {
namespace {

constexpr std::size_t max_command = std::size_t{1} << 20U;

union FdMessage {
  cmsghdr header;  // aligns the buffer
  std::array<char, CMSG_SPACE(2 * sizeof(int))> bytes;
};

bool read_all(int fd, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(fd, data, size);
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return false;
    }
    if (count > 0) {
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }
  return true;
}

}  // namespace

std::array<UniqueFd, 2> socket_pair() {
  std::array<int, 2> fds{};
#ifdef SOCK_CLOEXEC
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data());
#else
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data());
#endif
  if (made != 0) {
    throw Error("cannot make a socket pair", std::strerror(errno));
  }
  for (const int fd : fds) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

bool send_offer(int socket, const std::vector<std::string>& command, int from_rsync, int to_rsync) {
  std::string body;
  for (const std::string& word : command) {
    body += word;
    body += '\0';
  }
  auto size = static_cast<std::uint32_t>(body.size());
  iovec part{&size, sizeof size};
  FdMessage control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> fds = {from_rsync, to_rsync};
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, 0);
  } while (sent < 0 && errno == EINTR);
  // Four bytes go out whole or not at all.
  return sent == static_cast<ssize_t>(sizeof size) && write_all(socket, body);
}

std::optional<PipeOffer> receive_offer(int socket) {
  std::uint32_t size = 0;
  iovec part{&size, sizeof size};
  FdMessage control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &message, 0);
  } while (count < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (count != static_cast<ssize_t>(sizeof size) || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
    return std::nullopt;
  }
  std::array<int, 2> fds{};
  std::memcpy(fds.data(), CMSG_DATA(header), sizeof fds);
  PipeOffer offer;
  offer.from_rsync.reset(fds[0]);
  offer.to_rsync.reset(fds[1]);
  for (const int fd : fds) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  if (size > max_command) {
    return std::nullopt;
  }
  std::string body(size, '\0');
  if (!read_all(socket, body.data(), body.size())) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\0', at);
    offer.command.push_back(body.substr(at, end - at));
    at = end == std::string::npos ? body.size() : end + 1;
  }
  return offer;
}

// rsync calls us as it would call ssh: [OPTIONS] HOST COMMAND...; before that stands the socket's number.
int serve_rsync_pipe(const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  const int socket = arguments.empty() ? -1 : parse_number<int>(arguments[at++]).value_or(-1);
  while (at < arguments.size() && arguments[at].starts_with('-')) {
    at += arguments[at] == "-l" ? 2 : 1;
  }
  ++at;  // the host: there is only one
  if (socket < 0 || at >= arguments.size()) {
    write_all(STDERR_FILENO, "remote: __rsync-pipe is for rsync alone\n");
    return 2;
  }
  const SigpipeGuard guard;  // whoever started rsync may be gone already: that is an exit code, not a signal
  const std::vector<std::string> command(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                         arguments.end());
  if (!send_offer(socket, command, STDIN_FILENO, STDOUT_FILENO)) {
    return 255;
  }
  // From here on the bytes go past us. rsync waits for our end, and the other side tells us when and how.
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  char code = 0;
  return read_all(socket, &code, 1) ? static_cast<unsigned char>(code) : 255;
}

}  // namespace remote::ssh
