#include "jobs/followed.hpp"

#include <utility>

#include <fmt/format.h>

namespace remote::jobs {
FollowRequest Followed::request(const FollowOptions& options) const {
  FollowRequest request;
  request.id = job.id;
  request.follow = options.follow;
  request.wait_only = silent;
  if (positioned || !options.lines) {
    request.out_offset = out.offset;
    request.err_offset = err.offset;
  } else {
    request.lines = options.lines;
  }
  return request;
}

void Followed::take(ssh::Stream which, std::string_view data, const Output& output) {
  if (failure) {
    return;
  }
  StreamState& stream = which == ssh::Stream::out ? out : err;
  StreamState& other = which == ssh::Stream::out ? err : out;
  const auto begins = [&](std::string_view line) {
    const auto offsets = parse_follow(line);
    if (offsets) {
      stream.offset = which == ssh::Stream::out ? offsets->first : offsets->second;
      if (!positioned && !other.begun()) {
        // Whichever header comes first positions both, so that a link that breaks right now resumes there.
        other.offset = which == ssh::Stream::out ? offsets->second : offsets->first;
      }
    }
    return offsets.has_value();
  };
  try {
    data = stream.greeting.strip(data, begins);
  } catch (const Error& error) {
    failure.emplace(fmt::format("cannot follow job {}", job.key), error.message(), error.hint());
    return;
  }
  if (!data.empty()) {
    stream.offset += data.size();
    output(index, which, data);
  }
}

void Followed::begin_anew() {
  positioned = positioned || out.begun() || err.begun();
  out.greeting = {};
  err.greeting = {};
}

}  // namespace remote::jobs
