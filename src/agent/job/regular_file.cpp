#include "agent/job/regular_file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace remote::agent {

RegularFile::RegularFile(const Path& path, Links links)
    : fd_(::open(path.c_str(),
                 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::refuse ? O_NOFOLLOW : 0))) {
  if (fd_ >= 0 && (::fstat(fd_, &info_) != 0 || !S_ISREG(info_.st_mode))) {
    ::close(fd_);
    fd_ = -1;
  }
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

std::size_t RegularFile::read(void* to, std::size_t most, std::uint64_t offset) const {
  std::size_t done = 0;
  while (done < most) {
    const ssize_t count =
        ::pread(fd_, static_cast<char*>(to) + done, most - done, static_cast<off_t>(offset + done));
    if (count <= 0) {
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace remote::agent
