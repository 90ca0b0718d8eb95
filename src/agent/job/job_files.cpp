#include "agent/job/job_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/regular_file.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {

std::optional<std::string> read_job_file(const Path& path, std::size_t most) {
  const RegularFile file(path);
  if (!file) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> buffer{};
  std::size_t count = 0;
  while (text.size() < most &&
         (count = file.read(buffer.data(), std::min(buffer.size(), most - text.size()), text.size())) > 0) {
    text.append(buffer.data(), count);
  }
  return text;
}

std::optional<std::string> read_job_line(const Path& path) {
  std::optional<std::string> text = read_job_file(path);
  const std::size_t end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) {
    return std::nullopt;
  }
  text->resize(end);
  return text;
}

std::vector<std::string> read_job_words(const Path& path) {
  return split_words(read_job_line(path).value_or(""));
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void print_error(std::string_view text) {
  write_whole(STDERR_FILENO, text::format("remote: {}\n", text));
}

bool lock_file(int fd, std::chrono::milliseconds limit) {
  const std::chrono::milliseconds end = read_boot_clock() + limit;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (read_boot_clock() > end) {
      return false;
    }
    ::usleep(10'000);
  }
  return true;
}

std::string make_random_name() {
  std::array<unsigned char, 8> bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return to_hex(bytes);
}

Descriptor hold_text(std::string_view text) {
  Descriptor file(::memfd_create("text", MFD_CLOEXEC));
  if (file && (!write_whole(file.get(), text) || ::lseek(file.get(), 0, SEEK_SET) != 0)) {
    file.reset();
  }
  return file;
}

bool write_job_file(const Path& path, std::string_view text, int flags) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (fd < 0) {
    return false;
  }
  const bool is_written = write_whole(fd, text);
  return ::close(fd) == 0 && is_written;  // some file systems report a full disk only here
}

}  // namespace remote::agent
