#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/stat.h>

#include "agent/host/path.hpp"

namespace remote::agent {

enum class Links { follow, refuse };

// A regular file, opened for reading. Opening any other type fails, and does not block on a FIFO.
class RegularFile {
 public:
  explicit RegularFile(const Path& path, Links links = Links::refuse);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  // The attributes at the time of opening.
  const struct stat& info() const { return info_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(info_.st_size); }
  // Returns the number of bytes read, which is less than `most` at the end of the file or after an error.
  std::size_t read(void* to, std::size_t most, std::uint64_t offset) const;

 private:
  int fd_;
  struct stat info_ {};
};

}  // namespace remote::agent
