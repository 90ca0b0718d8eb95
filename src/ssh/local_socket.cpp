#include "ssh/local_socket.hpp"

#include <cerrno>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ssh/tcp.hpp"

namespace remote::ssh {
namespace {

UniqueFd local_socket(const std::string& path,
                      const std::function<bool(int, const sockaddr*, socklen_t)>& use) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return UniqueFd();
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd = stream_socket(AF_UNIX);
  if (fd && !use(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address)) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace

UniqueFd connect_local(const std::string& path, bool patient) {
  return local_socket(path, [patient](int fd, const sockaddr* address, socklen_t size) {
    return (patient || ::fcntl(fd, F_SETFL, O_NONBLOCK) == 0) && ::connect(fd, address, size) == 0;
  });
}

UniqueFd listen_local(const std::string& path, int backlog) {
  return local_socket(path, [backlog](int fd, const sockaddr* address, socklen_t size) {
    return ::bind(fd, address, size) == 0 && ::listen(fd, backlog) == 0;
  });
}

}  // namespace remote::ssh
