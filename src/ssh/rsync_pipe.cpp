#include "ssh/rsync_pipe.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace remote::ssh {
namespace {

constexpr std::size_t max_command = std::size_t{1} << 20U;

// A message of four bytes, which is sent completely or not at all, with two descriptors.
struct FdMessage {
  FdMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;

  // Calls sendmsg(2) or recvmsg(2). Returns false on failure, or if the peer has closed its end.
  template <typename Call>
  bool pass(const Call& call) {
    return uninterrupted([&] { return call(&message); }) == static_cast<ssize_t>(sizeof size);
  }

  std::uint32_t size = 0;
  std::array<int, 2> fds{};
  iovec part{&size, sizeof size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
};

bool read_all(int fd, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = uninterrupted([&] { return ::read(fd, data, size); });
    if (count <= 0) {
      return false;
    }
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

bool send_offer(int socket, const std::vector<std::string>& command, int from_rsync, int to_rsync) {
  const std::string body = join(command, std::string_view("\0", 1));
  FdMessage offer;
  offer.size = static_cast<std::uint32_t>(body.size());
  offer.fds = {from_rsync, to_rsync};
  cmsghdr* header = CMSG_FIRSTHDR(&offer.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof offer.fds);
  std::memcpy(CMSG_DATA(header), offer.fds.data(), sizeof offer.fds);
  return offer.pass([&](msghdr* message) { return ::sendmsg(socket, message, 0); }) &&
         write_all(socket, body);
}

std::optional<PipeOffer> receive_offer(int socket) {
  FdMessage said;
  const bool whole = said.pass([&](msghdr* message) { return ::recvmsg(socket, message, 0); });
  const cmsghdr* header = CMSG_FIRSTHDR(&said.message);
  if (!whole || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof said.fds)) {
    return std::nullopt;
  }
  std::memcpy(said.fds.data(), CMSG_DATA(header), sizeof said.fds);
  PipeOffer offer;
  offer.from_rsync.reset(said.fds[0]);
  offer.to_rsync.reset(said.fds[1]);
  for (const int fd : said.fds) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  if (said.size > max_command) {
    return std::nullopt;
  }
  std::string body(said.size, '\0');
  if (!read_all(socket, body.data(), body.size())) {
    return std::nullopt;
  }
  offer.command = split(body, '\0');
  return offer;
}

// rsync calls this program like ssh: [OPTIONS] HOST COMMAND...; the socket's number is the first argument.
int serve_rsync_pipe(const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  const int socket = arguments.empty() ? -1 : parse_number<int>(arguments[at++]).value_or(-1);
  while (at < arguments.size() && arguments[at].starts_with('-')) {
    at += arguments[at] == "-l" ? 2 : 1;
  }
  ++at;  // skip the host, because there is only one
  if (socket < 0 || at >= arguments.size()) {
    write_all(STDERR_FILENO, "remote: __rsync-pipe is for rsync alone\n");
    return 2;
  }
  const SigpipeGuard guard;  // if the process that started rsync has already exited, return an exit code
                             // instead of dying by a signal
  const std::vector<std::string> command(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                         arguments.end());
  if (!send_offer(socket, command, STDIN_FILENO, STDOUT_FILENO)) {
    return 255;
  }
  // From now on, the bytes bypass this process. rsync waits until it exits, and the peer reports when and
  // with which code.
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  char code = 0;
  return read_all(socket, &code, 1) ? static_cast<unsigned char>(code) : 255;
}

}  // namespace remote::ssh
