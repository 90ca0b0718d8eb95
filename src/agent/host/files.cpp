#include "agent/host/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/strings.hpp"

namespace remote::agent {

std::optional<std::string> read_file(const Path& path, std::size_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 16384> buffer{};
  ssize_t count = 0;
  while (text.size() < most && (count = ::read(fd, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  if (count < 0 && text.empty()) {
    return std::nullopt;
  }
  text.resize(std::min(text.size(), most));
  return text;
}

std::string read_first_line(const Path& path) {
  const std::string text = read_file(path, 4096).value_or("");
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> read_lines(const Path& path) {
  std::vector<std::string> lines = split(read_file(path, std::size_t{16} << 20U).value_or(""), '\n');
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

std::string read_host_name(const Host& host) {
  return read_first_line(host.system("/proc/sys/kernel/hostname"));
}

std::string read_stdin() {
  std::string text;
  std::array<char, 16384> buffer{};
  while (const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size())) {
    if (count < 0 && errno != EINTR) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return text;
}

}  // namespace remote::agent
