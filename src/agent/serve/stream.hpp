#pragma once

#include <cstdint>
#include <string_view>

#include "wire/request.hpp"

namespace remote::agent {

// The answer to one request, from the perspective of its handler. Each stream belongs to one thread.
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Sends a message. It must fit into one frame.
  virtual void send(const wire::Reply& reply) = 0;
  virtual std::uint32_t id() const { return 0; }
  // Whether the client has aborted the stream or disconnected, so that the rest of the answer is not needed.
  virtual bool is_closed() const = 0;
  // Returns false at the user's process limit. In that case, no other request is read or answered meanwhile.
  virtual bool has_thread() const { return true; }
};

}  // namespace remote::agent
