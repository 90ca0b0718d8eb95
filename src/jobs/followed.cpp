#include "jobs/followed.hpp"

#include <utility>

#include <fmt/format.h>

namespace remote::jobs {
namespace {

// A header line that grows past this is no header but a login shell that prints without end.
constexpr std::size_t max_greeting = std::size_t{1} << 20U;

}  // namespace

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

bool Followed::pass_greeting(ssh::Stream which, std::string_view& data) {
  StreamState& stream = which == ssh::Stream::out ? out : err;
  StreamState& other = which == ssh::Stream::out ? err : out;
  while (!stream.begun && !data.empty()) {
    const std::size_t end = data.find('\n');
    stream.greeting.append(data.substr(0, end));
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
    if (stream.greeting.size() > max_greeting) {
      failure.emplace(fmt::format("cannot follow job {}", job.key), "the login shell prints without end");
      return false;
    }
    if (end == std::string_view::npos) {
      return false;
    }
    std::optional<std::pair<std::uint64_t, std::uint64_t>> offsets;
    try {
      offsets = parse_follow(stream.greeting);
    } catch (const Error& error) {
      failure.emplace(error);
      return false;
    }
    if (offsets) {
      stream.begun = true;
      stream.offset = which == ssh::Stream::out ? offsets->first : offsets->second;
      if (!positioned && !other.begun) {
        // Whichever header comes first positions both, so that a link that breaks right now resumes there.
        other.offset = which == ssh::Stream::out ? offsets->second : offsets->first;
      }
    }
    stream.greeting.clear();
  }
  return !data.empty();
}

void Followed::take(ssh::Stream which, std::string_view data, const Output& output) {
  if (failure || !pass_greeting(which, data)) {
    return;
  }
  (which == ssh::Stream::out ? out : err).offset += data.size();
  output(index, which, data);
}

void Followed::begin_anew() {
  positioned = positioned || out.begun || err.begun;
  for (StreamState* stream : {&out, &err}) {
    stream->begun = false;
    stream->greeting.clear();
  }
}

}  // namespace remote::jobs
