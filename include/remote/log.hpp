#pragma once

#include <functional>
#include <string_view>

// Log messages about the library's work, for a user who asks "what is it waiting for?". They never contain
// values of variables, passwords, scripts or the output of commands.

namespace remote {

// info: steps, with their duration and bytes. debug: also every exec, login method and local command.
enum class LogLevel { off, info, debug };

// Receives one line, without a newline and with control characters escaped. `server` is the name in
// configs.yaml, or "" if the line is not about one server. May be called on any thread, but never
// concurrently. It must not call the library; its exceptions are dropped.
using LogSink = std::function<void(LogLevel, std::string_view server, std::string_view text)>;

// Sends the lines up to this level, from all threads of this process, to `sink` (nullptr: nowhere, which is
// the default). The previous sink is not called after this returns. Thread-safe.
void set_log(LogLevel upto, LogSink sink);

}  // namespace remote
