#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "agent/host/host.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/record.hpp"
#include "wire/cbor.hpp"
#include "wire/jobs.hpp"

// Following a job: reading its output, and waiting for its end. The threads for this are in
// serve/follower.hpp.

namespace remote::agent {

// what() is the reason.
class CannotFollow : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads the output of a job, starting at the requested position. Not thread-safe.
class OutputReader {
 public:
  // Throws CannotFollow.
  OutputReader(const Host& host, const JobsFolder& folder, const wire::FollowRequest& request);

  wire::FollowBegins begins() const;
  // Whether the job had already ended when this reader was created.
  bool had_ended() const { return had_ended_; }
  std::array<Path, 2> files() const { return {files_[0].path, files_[1].path}; }

  // Fills `payload` for the next frame: one byte that selects the output (see wire::FollowRequest), then at
  // most `most` - 1 bytes of it. Returns false if no output is available.
  bool read(wire::Bytes& payload, std::size_t most);
  // Stops reading at the current file sizes.
  void finish();
  // Undoes finish(), because the job is still running.
  void resume();
  bool is_done() const;

 private:
  struct File {
    Path path;
    std::uint64_t position = 0;
    std::uint64_t seen = 0;  // its size at the last read
    std::optional<std::uint64_t> end{};
  };

  bool read(File& file, wire::Bytes& payload, std::size_t most, std::uint64_t end);

  std::array<File, 2> files_;  // job.out, job.err
  // The less recently modified file is read first, up to its initial size. This way, a traceback follows the
  // output that precedes it.
  std::size_t older_ = 0;
  std::uint64_t older_end_ = 0;
  std::size_t last_ = 0;  // index of the last file read
  bool had_ended_ = false;
  bool wait_only_ = false;
  bool is_finishing_ = false;
};

// Detects the end of a job. Not thread-safe.
class EndWatch {
 public:
  EndWatch(Backends& backends, std::string id) : backends_(backends), id_(std::move(id)) {}
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // Becomes readable when the supervisor exits; -1 if unavailable.
  int fd() const { return fd_; }
  // The polling interval for has_ended(), which is needed even with an fd().
  std::chrono::milliseconds interval() const;
  // Runs no program, except for Slurm jobs.
  bool has_ended();

 private:
  bool is_supervised(const JobRecord& job);

  Backends& backends_;
  std::string id_;
  int fd_ = -1;
};

}  // namespace remote::agent
