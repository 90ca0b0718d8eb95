#include "base/log.hpp"

#include <atomic>
#include <mutex>

#include "base/strings.hpp"

namespace remote {
namespace {

// One log for the whole process. If it had to be passed from function to function, it would be missing where
// it is needed.
struct Log {
  std::atomic<LogLevel> upto{LogLevel::off};
  std::mutex mutex;
  LogSink sink;
};

Log& the_log() {
  static Log log;
  return log;
}

}  // namespace

void set_log(LogLevel upto, LogSink sink) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.upto = sink ? upto : LogLevel::off;
  log.sink = std::move(sink);
}

bool logs(LogLevel level) noexcept {
  return level <= the_log().upto.load(std::memory_order_relaxed);
}

void detail::write_log(LogLevel level, std::string_view server, std::string_view text) noexcept {
  try {
    const std::string line = visible_line(text);
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    if (log.sink) {
      log.sink(level, server, line);
    }
  } catch (...) {
    // A lost log line is not a reason to fail.
  }
}

}  // namespace remote
