#include "cli/show/waiting.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::cli {

Waiting::Waiting(ui::Terminal& terminal, std::string for_what)
    : terminal_(terminal), for_what_(std::move(for_what)) {
  if (terminal_.can_redraw() && !terminal_.quiet()) {
    thread_ = std::thread([this] { watch(); });
  }
}

Waiting::~Waiting() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
  terminal_.set_live("");
}

void Waiting::set(std::string for_what) {
  const std::lock_guard lock(mutex_);
  for_what_ = std::move(for_what);
}

void Waiting::watch() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (int seconds = 1;
       !changed_.wait_until(lock, begin + std::chrono::seconds(seconds), [&] { return over_; }); ++seconds) {
    if (!terminal_.in_background()) {
      const std::string row = fmt::format("waiting {} ({} s)", visible_line(for_what_), seconds);
      terminal_.set_live(ui::shorten(row, terminal_.columns() - 1));
    }
  }
}

}  // namespace remote::cli
