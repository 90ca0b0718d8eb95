#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/request.hpp"

// The agent's side of the channel to a client.

namespace remote::agent {

// Answers a request with messages on the stream. `data` is the data that followed the request. Must be
// thread-safe. An exception ends the answer with a Refusal.
using Answer = std::function<void(const wire::Request& request, const std::string& data, Stream& stream)>;

// Reads requests from `in` and writes answers to `out` until the client has no more requests (`end` on stream
// 0) and all are answered, or until it closes its end. Each request has its own thread, except that a
// FollowRequest is handled by a Follower, and a RunRequest by a Foreground instead of `answer`. Sends a
// keepalive at this interval while an answer is pending. When the client disconnects, sets `host.cancelled`;
// calls of `answer` should then return soon. Returns the agent's exit status: 1 if the client violated the
// protocol.
int serve(int in, int out, const std::string& program, const Host& host, const Answer& answer,
          std::chrono::milliseconds interval = std::chrono::seconds(2));

}  // namespace remote::agent
