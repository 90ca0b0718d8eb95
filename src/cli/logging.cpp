#include "cli/logging.hpp"

#include <memory>
#include <mutex>

#include <remote/log.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

namespace remote::cli {
namespace {

class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(ui::Terminal& terminal) : terminal_(terminal) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    terminal_.err({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  ui::Terminal& terminal_;
};

}  // namespace

Logging::Logging(ui::Terminal& terminal, int verbosity) {
  if (verbosity == 0) {
    return;
  }
  terminal.set_logging();
  const auto logger = std::make_shared<spdlog::logger>("remote", std::make_shared<TerminalSink>(terminal));
  logger->set_pattern("%H:%M:%S.%e %v");
  logger->set_level(spdlog::level::debug);
  set_log(verbosity == 1 ? LogLevel::info : LogLevel::debug,
          [logger](LogLevel level, std::string_view server, std::string_view text) {
            logger->log(level == LogLevel::info ? spdlog::level::info : spdlog::level::debug, "{}{}{}",
                        server, server.empty() ? "" : ": ", text);
          });
}

Logging::~Logging() {
  set_log(LogLevel::off, nullptr);
}

}  // namespace remote::cli
