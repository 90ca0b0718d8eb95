#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "ui/terminal.hpp"

namespace remote::ui {
namespace {

std::string read_all(const Pipe& pipe) {
  std::string text(1000, '\0');
  const ssize_t count = ::read(pipe.read.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

TEST(OpenLine, IsEndedBeforeAMessageInTheSameFile) {
  const Pipe both = make_pipe();
  Terminal terminal({.in = -1, .out = both.write.get(), .err = both.write.get()});
  terminal.pass_out("50 %");
  terminal.notice("ended");
  terminal.pass_out("line\n");
  terminal.warning("late");
  terminal.pass_err("error");
  terminal.pass_err("");
  terminal.message("error: lost");
  terminal.pass_out("half");
  terminal.end_open_line();
  terminal.end_open_line();
  terminal.pass_out("half");
  terminal.break_line();
  terminal.message("interrupted");
  EXPECT_EQ(read_all(both),
            "50 %\nended\nline\nwarning: late\nerror\nerror: lost\nhalf\nhalf\ninterrupted\n");
}

TEST(OpenLine, IsLeftAloneInAnotherFile) {
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  Terminal terminal({.in = -1, .out = out.write.get(), .err = err.write.get()});
  terminal.pass_out("50 %");
  terminal.notice("ended");
  EXPECT_EQ(read_all(out), "50 %");
  EXPECT_EQ(read_all(err), "ended\n");
}

}  // namespace
}  // namespace remote::ui
