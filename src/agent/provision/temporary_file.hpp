#pragma once

#include <utility>

#include <unistd.h>

#include "agent/host/path.hpp"

namespace remote::agent {

// A file that the destructor removes, if it exists.
class TemporaryFile {
 public:
  explicit TemporaryFile(Path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace remote::agent
