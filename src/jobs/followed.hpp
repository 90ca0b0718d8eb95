#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "jobs/follow.hpp"
#include "jobs/job.hpp"
#include "jobs/protocol.hpp"
#include "ssh/connection.hpp"

namespace remote::jobs {

// One of a job's two streams: what stands before the "@remote1 follow" line is the login shell's, what comes
// after it is the job's. Each stream has its own such line, because the two arrive independently.
struct StreamState {
  std::uint64_t offset = 0;  // of the next byte to hand over
  Greeting greeting;

  bool begun() const { return greeting.over(); }
};

// A job that is followed, and how far. It outlives the channels that it is followed on; one thread at a time.
struct Followed {
  using Output = std::function<void(std::size_t, ssh::Stream, std::string_view)>;

  std::size_t index = 0;
  Job job;
  bool positioned = false;  // the offsets count: from now on they are asked for, not lines
  StreamState out;
  StreamState err;
  bool silent = false;           // only its end is of interest
  int idle_rounds = 0;           // reopened so often without a new byte
  std::optional<Error> failure;  // why it cannot be followed; this one job, not its neighbours

  // Of both streams together: grows with every byte that is handed over.
  std::uint64_t bytes() const { return out.offset + err.offset; }
  // What to ask the server for on a new channel.
  FollowRequest request(const FollowOptions& options) const;
  // Takes a piece of what a channel brings and hands the job's bytes to `output`. Sets `failure` instead of
  // throwing, which would end the following of all jobs on this connection; throws what `output` throws.
  void take(ssh::Stream which, std::string_view data, const Output& output);
  // The channel is gone: the streams begin anew on the next one, at the byte where they are.
  void begin_anew();
};

}  // namespace remote::jobs
