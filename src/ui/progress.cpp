#include "ui/progress.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::ui {
namespace {

constexpr std::chrono::milliseconds redraw_every{100};
constexpr std::chrono::seconds print_every{10};  // if the output is a pipe, where nothing can be redrawn

std::string seconds_since(std::chrono::steady_clock::time_point begun) {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  return passed.count() < 60 ? fmt::format("{:.1f}s", passed.count())
                             : fmt::format("{}m {:02}s", static_cast<int>(passed.count()) / 60,
                                           static_cast<int>(passed.count()) % 60);
}

std::string bar(double fraction, int width) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  return fmt::format("[{}{}] {:3.0f}%", std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(width - full), '.'), fraction * 100);
}

// A bar with 20 cells needs a wide screen.
int bar_width(std::size_t columns) {
  return columns < 80 ? 10 : 20;
}

std::string megabytes(double bytes) {
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

// "[####......]  42%  123.4 MB  12.3 MB/s  0:01:30 left"
std::string describe(const Transfer& transfer, std::size_t columns) {
  std::string text;
  if (transfer.total > 0) {
    text =
        bar(static_cast<double>(transfer.bytes) / static_cast<double>(transfer.total), bar_width(columns)) +
        "  ";
  }
  text += megabytes(static_cast<double>(transfer.bytes)) + "  " + megabytes(transfer.bytes_per_second) + "/s";
  const auto left = transfer.left.count();
  return left == 0 ? text
                   : text + fmt::format("  {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

}  // namespace

Progress::Progress(Terminal& terminal, std::vector<std::string> names, bool quiet)
    : terminal_(terminal), live_(terminal.can_redraw() && !quiet), quiet_(quiet) {
  for (std::string& name : names) {
    name_width_ = std::max(name_width_, display_width(name));
    Line line;
    line.name = std::move(name);
    line.step = "connecting";
    lines_.push_back(std::move(line));
  }
  if (live_) {
    thread_ = std::thread([this] { redraw_loop(); });
  }
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Progress::redraw_loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, redraw_every, [this] { return stop_; });
    if (!stop_) {
      terminal_.set_live(draw());
    }
  }
  terminal_.set_live("");
}

std::string Progress::draw() const {
  const std::size_t columns = terminal_.columns();
  const std::string total = total_line(columns);
  const std::size_t room = std::max<std::size_t>(terminal_.rows(), 4) - (total.empty() ? 1 : 2);
  std::vector<std::string> shown;
  std::size_t hidden = 0;
  const auto active = static_cast<std::size_t>(
      std::count_if(lines_.begin(), lines_.end(), [](const Line& line) { return !line.ended; }));
  for (const Line& line : lines_) {
    if (line.ended) {
      continue;
    }
    if (shown.size() + (active > room ? 1 : 0) < room) {
      shown.push_back(live_line(line, columns));
    } else {
      ++hidden;
    }
  }
  if (hidden > 0) {
    shown.push_back(shorten(fmt::format("… and {} more", hidden), columns - 1));
  }
  if (!total.empty()) {
    shown.push_back(total);
  }
  return join(shown, "\n");
}

std::string Progress::live_line(const Line& line, std::size_t columns) const {
  std::string text = line.name + std::string(name_width_ - display_width(line.name), ' ');
  if (line.transferring) {
    text += fmt::format("  {}  {}", line.step, describe(*line.transfer, columns));
    return shorten(text, std::max<std::size_t>(columns, 2) - 1);
  }
  text += fmt::format("  {:<10} {:>7}  ", line.step, seconds_since(line.begun));
  if (line.fraction) {
    text += bar(*line.fraction, bar_width(columns)) + "  ";
  }
  text += visible_line(line.detail);
  // Use one cell less than the terminal has, because some terminals wrap the line when the last cell is used.
  return shorten(text, std::max<std::size_t>(columns, 2) - 1);
}

// The sums of sent and remaining data for all servers that receive something, including finished ones, so
// that the numbers do not jump back.
std::string Progress::total_line(std::size_t columns) const {
  Transfer sum;
  std::size_t count = 0;
  bool active = false;
  bool known = true;
  for (const Line& line : lines_) {
    if (!line.transfer) {
      continue;
    }
    ++count;
    sum.bytes += line.transfer->bytes;
    sum.total += line.transfer->total;
    known = known && line.transfer->total > 0;
    if (line.transferring && !line.ended) {
      active = true;
      sum.bytes_per_second += line.transfer->bytes_per_second;
    }
  }
  if (!active || count < 2) {
    return {};
  }
  if (!known) {
    sum.total = 0;
  } else if (sum.bytes_per_second > 0 && sum.total >= sum.bytes) {
    sum.left = std::chrono::seconds(
        static_cast<std::int64_t>(static_cast<double>(sum.total - sum.bytes) / sum.bytes_per_second));
  }
  const std::string name = "total";
  const std::size_t indent = name_width_ > name.size() ? name_width_ - name.size() : 0;
  return shorten(
      name + std::string(indent, ' ') + fmt::format("  {} servers  ", count) + describe(sum, columns),
      std::max<std::size_t>(columns, 2) - 1);
}

// Use the sent data as the total. Until now, the total included files that were already there.
void Progress::end_transfer(Line& line) {
  if (line.transferring) {
    line.transferring = false;
    line.transfer->total = line.transfer->bytes;
  }
}

void Progress::step(std::size_t index, const std::string& name) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_.at(index);
  line.step = name;
  line.detail.clear();
  line.fraction.reset();
  end_transfer(line);
  if (!live_ && !quiet_) {
    terminal_.err(line.name + ": " + name + "\n");
  }
}

void Progress::detail(std::size_t index, const std::string& text, std::optional<double> fraction) {
  const std::lock_guard lock(mutex_);
  lines_.at(index).detail = text;
  lines_.at(index).fraction = fraction;
  end_transfer(lines_.at(index));
}

void Progress::wait(std::size_t index, const std::string& text) {
  detail(index, text, std::nullopt);
  const std::lock_guard lock(mutex_);
  Line& line = lines_.at(index);
  if (!live_ && !quiet_ && std::exchange(line.waits_for, text) != text) {
    terminal_.err(fmt::format("{}: {}\n", line.name, visible_line(text)));
  }
}

void Progress::transfer(std::size_t index, const Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_.at(index);
  line.transfer = transfer;
  line.transferring = true;
  if (!live_ && !quiet_ && Clock::now() - line.printed >= print_every) {
    line.printed = Clock::now();
    terminal_.err(fmt::format("{}: {}  {}\n", line.name, line.step, describe(transfer, 80)));
  }
}

void Progress::done(std::size_t index, const std::string& summary) {
  const std::lock_guard lock(mutex_);
  const Line& line = lines_.at(index);
  const std::string passed = seconds_since(line.begun);
  const std::string mark = terminal_.paint_err(Style::green, "ok");
  finish(index, quiet_ ? std::string()
                       : fmt::format("{}: {} {} ({})\n", line.name, mark, visible_line(summary), passed));
}

void Progress::failed(std::size_t index, const std::string& reason, const std::string& lines,
                      const std::string& log) {
  const std::lock_guard lock(mutex_);
  const Line& line = lines_.at(index);
  std::string text = fmt::format("{}: {} {} ({})\n", line.name, terminal_.paint_err(Style::red, "failed"),
                                 visible_line(reason), seconds_since(line.begun));
  for (const std::string& shown : split(lines, '\n')) {
    text += "    | " + visible_line(shown) + "\n";
  }
  if (!log.empty()) {
    text += "    full log: " + log + "\n";
  }
  finish(index, text);
}

void Progress::finish(std::size_t index, const std::string& text) {
  lines_.at(index).ended = true;
  end_transfer(lines_.at(index));
  if (live_) {
    terminal_.set_live(draw(), text);
  } else {
    terminal_.err(text);
  }
}

}  // namespace remote::ui
