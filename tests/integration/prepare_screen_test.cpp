// `remote prepare` on a terminal: the test drives it on a pty and reads the screen as a user would.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "support/password_server.hpp"
#include "support/paths.hpp"
#include "support/program_on_terminal.hpp"
#include "support/test_sandbox.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The features of a terminal that we use: text, \r,
// , cursor up, erase to the end of the screen, colors. Rows that scroll off the top are kept.
class Screen {
 public:
  void add(std::string_view data) {
    for (const char c : data) {
      if (!escape_.empty()) {
        escape_ += c;
        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
          run_escape();
        }
      } else if (c == '\033') {
        escape_ = c;
      } else if (c == '\r') {
        column_ = 0;
      } else if (c == '\n') {
        ++row_;
      } else {
        row().resize(std::max(row().size(), column_ + 1), ' ');
        row()[column_++] = c;
      }
    }
    for (const std::string& line : rows_) {
      const auto cells = std::ranges::count_if(line, [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      });  // of UTF-8, the first bytes
      widest_ = std::max(widest_, static_cast<std::size_t>(cells));
    }
  }
  std::string text() {
    row();
    return join(rows_, "\n");
  }
  std::size_t widest() const { return widest_; }
  const std::string& unknown() const { return unknown_; }

 private:
  std::string& row() {
    rows_.resize(std::max(rows_.size(), row_ + 1));
    return rows_[row_];
  }
  void run_escape() {
    const std::size_t count =
        parse_number<std::size_t>(std::string_view(escape_).substr(2, escape_.size() - 3)).value_or(1);
    if (escape_.back() == 'A') {
      row_ -= std::min(row_, count);
    } else if (escape_.back() == 'J') {
      row().resize(std::min(row().size(), column_));
      rows_.resize(row_ + 1);
    } else if (escape_.back() != 'm') {
      unknown_ += escape_;
    }
    escape_.clear();
  }

  std::vector<std::string> rows_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::size_t widest_ = 0;
  std::string escape_;
  std::string unknown_;
};

class PrepareOnATerminal : public ::testing::Test {
 protected:
  PrepareOnATerminal() : sandbox_(2) {
    sandbox_.write_config();
    master_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    winsize size{};
    size.ws_row = 20;
    size.ws_col = 50;
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }

  Subprocess start(std::vector<std::string> words) {
    UniqueFd terminal(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    SubprocessSpec spec;
    spec.argv = {test::remote_binary, "--project", sandbox_.project().string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.pass_fds = {{terminal.get(), 1}, {terminal.get(), 2}};
    spec.set_env = {{"TERM", "xterm"}, {"HOME", sandbox_.home(0).string()}};
    spec.new_session = true;
    return Subprocess(spec);
  }
  // Reads output until `until` holds or the program ends, and keeps all of it in the screen.
  void watch(const std::function<bool()>& until = [] { return false; }) {
    std::array<char, 4096> buffer{};
    while (!until()) {
      pollfd slot{master_.get(), POLLIN, 0};
      ASSERT_GT(::poll(&slot, 1, 60000), 0) << "nothing happens:\n" << screen_.text();
      const ssize_t count = ::read(master_.get(), buffer.data(), buffer.size());
      if (count <= 0) {
        return;  // EIO: the other end is closed
      }
      screen_.add({buffer.data(), static_cast<std::size_t>(count)});
    }
  }

  test::TestSandbox sandbox_;
  UniqueFd master_;
  Screen screen_;
};

TEST_F(PrepareOnATerminal, FinishedLinesStayAndLiveOnesGo) {
  std::ofstream(sandbox_.project() / "train.py") << "print(1)\n";
  Subprocess program = start({"prepare"});
  watch();
  EXPECT_TRUE(program.wait().success()) << screen_.text();
  for (const char* name : {"node-1", "node-2"}) {
    EXPECT_THAT(screen_.text(), HasSubstr(std::string(name) + ": ok setup done, rsync 1 file ("));
  }
  EXPECT_THAT(screen_.text(), HasSubstr("2 servers prepared"));
  EXPECT_THAT(screen_.text(), Not(HasSubstr("connecting")));
  EXPECT_EQ(split(std::string(trim(screen_.text())), '\n').size(), 4U) << screen_.text();
  EXPECT_EQ(screen_.unknown(), "");
}

TEST_F(PrepareOnATerminal, ATransferShowsABarAServerAndTheirSum) {
  std::ofstream(sandbox_.project() / "big") << std::string(3'000'000, 'x');
  Subprocess program = start({"rsync", "--bwlimit", "1500"});
  std::string seen;
  watch([&] {
    const std::string text = screen_.text();
    if (text.find("total   2 servers  [") != std::string::npos &&
        text.find("node-1  rsync  [") < text.size() && text.find("node-2  rsync  [") < text.size()) {
      seen = text;
    }
    return !seen.empty();
  });
  ASSERT_NE(seen, "") << screen_.text();
  for (const std::string& row : split(seen, '\n')) {
    // "node-1  rsync  [###.......]  33%  1.0 MB  1.5 MB/s  0:00:01 left", as much as fits
    EXPECT_THAT(row, ::testing::MatchesRegex(
                         "(node-[12]  rsync|total   2 servers)  \\[#*\\.*\\] +[0-9]+%  [0-9.]+ MB.*"));
  }
  watch();
  EXPECT_TRUE(program.wait().success()) << screen_.text();
  EXPECT_LT(screen_.widest(), 50U);
  EXPECT_THAT(screen_.text(), Not(HasSubstr("total")));
  EXPECT_THAT(screen_.text(), HasSubstr("2 servers synced"));
}

TEST_F(PrepareOnATerminal, AFailureShowsTheLogAndStopsNobody) {
  fs::create_directories(sandbox_.home(1) / "my_project");
  std::ofstream(sandbox_.project() / "requirements.txt") << "pip\n";
  // On one server a folder is in place of the interpreter.
  fs::create_directories(sandbox_.home(1) / "my_project/.remote-scripts/bin/python/busy");
  Subprocess program = start({"prepare"});
  watch();
  EXPECT_EQ(program.wait(), ExitStatus::exited(1)) << screen_.text();
  const std::string text = screen_.text();
  EXPECT_THAT(text, HasSubstr("node-1: ok"));
  EXPECT_THAT(text, HasSubstr("node-2: failed"));
  EXPECT_THAT(text, HasSubstr("full log: "));
  EXPECT_THAT(text, HasSubstr("1 server prepared, 1 failed"));
}

TEST_F(PrepareOnATerminal, CtrlCLeavesACleanScreen) {
  // Another remote is preparing this environment and never finishes.
  fs::create_directories(sandbox_.home(0) / "my_project/.remote-scripts");
  const fs::path lock = sandbox_.home(0) / "my_project/.remote-scripts/setup.lock";
  const UniqueFd holder(::open(lock.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  Subprocess program = start({"setup", "--server", "node-1"});
  watch([this] { return screen_.text().find("setup") != std::string::npos; });
  EXPECT_THAT(screen_.text(), HasSubstr("node-1  setup"));
  EXPECT_LT(screen_.widest(), 50U);
  program.kill(SIGINT);
  watch();
  EXPECT_EQ(program.wait(), ExitStatus::exited(130));
  EXPECT_THAT(screen_.text(), Not(HasSubstr("node-1")));
}

// A question never shares a row with the progress of other servers, and leaves nothing behind.
TEST(PrepareWithQuestions, APromptHasItsOwnRowAndOthersGoOn) {
  test::TestSandbox sandbox(1);
  const test::PasswordRules rules{.password = "pw", .prompts = {}, .echo = {}, .answers = {}};
  test::PasswordServer first(rules);
  test::PasswordServer second(rules);
  sandbox.write_config();
  std::ofstream(sandbox.project() / ".remote/configs.yaml", std::ios::app)
      << "  a: {hostname: 127.0.0.1, username: ann, port: " << first.port() << "}\n"
      << "  b: {hostname: 127.0.0.1, username: ann, port: " << second.port() << "}\n";
  test::ProgramOnTerminal program({"--project", sandbox.project().string(), "setup"}, sandbox.home(0), 24,
                                  120);
  ASSERT_TRUE(program.shows("Password for ann@")) << program.screen();
  // node-1 continues.
  ASSERT_TRUE(test::eventually([&] { return fs::exists(sandbox.home(0) / "my_project/.remote-scripts"); }))
      << program.screen();
  program.type("pw\n");
  // After the answer the live rows reappear.
  ASSERT_TRUE(test::eventually([&] {
    const std::string& text = program.screen();
    return text.find("a  ", text.rfind("Password for")) != std::string::npos;
  })) << program.screen();
  EXPECT_TRUE(test::eventually([&] {
    Screen now;
    now.add(program.screen());
    return now.text().find("node-1: ok") != std::string::npos;
  })) << program.screen();
  ::kill(program.pid(), SIGTERM);
  // The servers run no commands, so it may already have failed.
  EXPECT_THAT(program.end(), ::testing::AnyOf(1, 130)) << program.screen();
  Screen screen;
  screen.add(program.screen());
  std::vector<std::string> rows = split(std::string(trim(screen.text())), '\n');
  std::ranges::sort(rows);
  EXPECT_THAT(rows, ::testing::Contains(::testing::MatchesRegex("Password for [^ ]*(, [^ ]*)?: ?")));
  EXPECT_THAT(rows, ::testing::Contains(HasSubstr("new host key of a")).Times(1));
  EXPECT_THAT(rows, ::testing::Contains(::testing::MatchesRegex("node-1: ok .*")));
  for (const std::string& row : rows) {
    EXPECT_THAT(row, Not(HasSubstr("  connecting  "))) << screen.text();
    EXPECT_TRUE(row.rfind("Password for") == 0 || row.find("Password for") == std::string::npos)
        << screen.text();
  }
}

}  // namespace
}  // namespace remote
