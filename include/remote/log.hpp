#pragma once

#include <functional>
#include <string_view>

// What the library reports of its work, for a person who asks "what is it waiting for?". It never contains a
// value of a variable, a password, a script or the output of a command.

namespace remote {

// info: steps, with their time and bytes. debug: also each exec, each login method, each local command.
enum class LogLevel { off, info, debug };

// Takes one line, without a newline and with control characters made visible. `server` is the name in
// configs.yaml, or "" where the line speaks of no server. Called on any thread, one call at a time. It must
// not call the library; what it throws is dropped.
using LogSink = std::function<void(LogLevel, std::string_view server, std::string_view text)>;

// Sends the lines up to this level, of all threads of this process, to `sink` (nullptr: nowhere, which is the
// default). The sink before it is not called any more once this returns. May be called on any thread.
void set_log(LogLevel upto, LogSink sink);

}  // namespace remote
