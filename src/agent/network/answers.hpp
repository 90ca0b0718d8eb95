#pragma once

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/pairs.hpp"

// Handlers of the requests about the network between servers. Each may run in its own thread.

namespace remote::agent {

// Returns after the stream is closed, or ten minutes after the last connection. A listener sends
// "remote1 TOKEN ADDRESS" on each connection, with the address of the other end, and reads one line:
// - "block N": after N bytes, including the line, it sends "got" and N bytes.
// - "ping": it sends "pong" up to 20 times, and waits for a line after each.
// - "take": at the end of the input it sends the number of bytes and the microseconds.
void answer_listen(const Host& host, const wire::ListenRequest& request, Stream& stream);
void answer_reach(const Host& host, const wire::ReachRequest& request, Stream& stream);
void answer_send(const Host& host, const wire::SendRequest& request, Stream& stream);

}  // namespace remote::agent
