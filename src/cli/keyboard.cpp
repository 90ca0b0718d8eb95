#include "cli/keyboard.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace remote::cli {
namespace {

// Resets the terminal modes that an interrupted program may have left on: alternate screen, hidden cursor,
// colors, mouse reporting and bracketed paste (xterm's control sequences, which other terminals ignore).
constexpr std::string_view usual_screen =
    "\033[?1047l\033[?25h\033[0m\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l";

std::atomic<int>& resize_target() {
  static std::atomic<int> fd{-1};
  return fd;
}

extern "C" void on_resize(int) {
  const int saved_errno = errno;
  if (const int fd = resize_target(); fd >= 0) {
    static_cast<void>(!::write(fd, "w", 1));  // if the pipe is full, the reader already has a wakeup
  }
  errno = saved_errno;
}

}  // namespace

Keyboard::Keyboard(Context& context) : context_(context), resized_(make_pipe()) {
  for (const UniqueFd* end : {&resized_.read, &resized_.write}) {
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
  resize_target() = resized_.write.get();
  struct sigaction action {};
  action.sa_handler = on_resize;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGWINCH, &action, &before_);
}

Keyboard::~Keyboard() {
  ::sigaction(SIGWINCH, &before_, nullptr);
  resize_target() = -1;
  if (raw_ && !finished_) {
    context_.terminal.err(usual_screen);
  }
  raw_.reset();
  context_.terminal.set_raw(false);
}

void Keyboard::begin() {
  if (context_.terminal.stdin_is_terminal()) {
    raw_.emplace(context_.terminal.input());
    context_.terminal.set_raw(true);
  }
}

void Keyboard::pause() {
  paused_ = raw_.has_value();
  raw_.reset();
  context_.terminal.set_raw(false);
}

void Keyboard::resume() {
  if (paused_) {
    begin();
  }
}

TerminalSide Keyboard::side() {
  const char* type = std::getenv("TERM");
  TerminalSide side;
  side.type = type != nullptr && *type != '\0' ? type : "dumb";
  side.size = [this] {
    return TerminalSize{static_cast<int>(context_.terminal.columns()),
                        static_cast<int>(context_.terminal.rows())};
  };
  side.input = context_.terminal.input();
  side.input_is_terminal = context_.terminal.stdin_is_terminal();
  side.resized = resized_.read.get();
  side.begin = [this] { begin(); };
  return side;
}

}  // namespace remote::cli
