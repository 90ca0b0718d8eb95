#include "support/command_world.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/cli.hpp"
#include "jobs/select.hpp"
#include "project/core.hpp"
#include "support/paths.hpp"

namespace remote::test {

std::vector<std::string> CommandResult::lines() const {
  std::vector<std::string> lines = split(out, '\n');
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

std::ostream& operator<<(std::ostream& stream, const CommandResult& result) {
  return stream << "exit code " << result.code << "\n--- stdout\n"
                << result.out << "--- stderr\n"
                << result.err << "---";
}

Capture::Capture() : fd_(::memfd_create("capture", MFD_CLOEXEC)) {
  // Append mode, so that reading does not move the writer's position.
  if (!fd_ || ::fcntl(fd_.get(), F_SETFL, O_APPEND) != 0) {
    throw std::runtime_error("no memory file");
  }
}

std::string Capture::text() const {
  std::string text;
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

PretendedTerminal::PretendedTerminal(const std::string& typed)
    : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) {
    throw std::runtime_error("no pseudoterminal");
  }
  slave_.reset(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!slave_ || ::tcgetattr(slave_.get(), &settings) != 0) {
    throw std::runtime_error("no pseudoterminal");
  }
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // do not turn a newline into CR LF
  ::tcsetattr(slave_.get(), TCSANOW, &settings);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 100;
  ::ioctl(slave_.get(), TIOCSWINSZ, &size);
  write_all(master_.get(), typed);
  reader_ = std::thread([this] {
    std::array<char, 65536> buffer{};
    ssize_t count = 0;
    while ((count = ::read(master_.get(), buffer.data(), buffer.size())) > 0) {  // EIO: fd() is closed
      const std::scoped_lock lock(mutex_);
      text_.append(buffer.data(), static_cast<std::size_t>(count));
    }
  });
}

PretendedTerminal::~PretendedTerminal() {
  finish();
}

std::string PretendedTerminal::text() const {
  const std::scoped_lock lock(mutex_);
  return text_;
}

std::string PretendedTerminal::finish() {
  slave_.reset();
  if (reader_.joinable()) {
    reader_.join();
  }
  return text_;
}

Variable::Variable(std::string name, const char* value) : name_(std::move(name)) {
  if (const char* before = std::getenv(name_.c_str())) {
    before_ = before;
  }
  if (value != nullptr) {
    ::setenv(name_.c_str(), value, 1);
  } else {
    ::unsetenv(name_.c_str());
  }
}

Variable::~Variable() {
  if (before_) {
    ::setenv(name_.c_str(), before_->c_str(), 1);
  } else {
    ::unsetenv(name_.c_str());
  }
}

namespace {

// The read end of a pipe that holds this text, followed by end of file.
UniqueFd pipe_with(const std::string& text) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  const UniqueFd writer(ends[1]);
  write_all(writer.get(), text);
  return UniqueFd(ends[0]);
}

}  // namespace

RunningCommand::RunningCommand(std::vector<std::string> words, std::shared_ptr<LocalServers> servers,
                               const Terminals& terminals) {
  if (terminals.in) {
    in_screen_.emplace(terminals.typed);
  }
  if (terminals.out) {
    out_screen_.emplace();
  }
  if (terminals.err) {
    err_screen_.emplace();
  }
  const std::string typed = in_screen_ ? "" : terminals.typed;
  thread_ = std::thread([this, words = std::move(words), servers = std::move(servers), typed] {
    const UniqueFd nothing =
        typed.empty() ? UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)) : pipe_with(typed);
    cli::Environment environment;
    environment.streams = {in_screen_ ? in_screen_->fd() : nothing.get(),
                           out_screen_ ? out_screen_->fd() : out_.fd(),
                           err_screen_ ? err_screen_->fd() : err_.fd()};
    environment.cancel = cancel_;
    environment.open = [&servers](const auto& folder, Hooks hooks) {
      hooks.rsync_helper = remote_binary;
      config::Config config = config::load(folder, hooks.strict);
      return project::project_of(
          std::make_unique<project::State>(std::move(config), std::move(hooks), share(servers)));
    };
    code_ = cli::run(words, std::move(environment));
  });
}

RunningCommand::~RunningCommand() {
  if (thread_.joinable()) {
    interrupt();
    thread_.join();
  }
}

CommandResult RunningCommand::wait() {
  thread_.join();
  return {code_, out_screen_ ? out_screen_->finish() : out_.text(),
          err_screen_ ? err_screen_->finish() : err_.text()};
}

Job old_record(const std::string& command) {
  constexpr std::chrono::hours an_hour{1};
  Job job;
  job.id = JobId::random();
  job.server = "a";
  job.command = command;
  job.remote_folder = {"~/proj", ".jobs"};
  job.state = JobState::succeeded;
  job.result = ExitStatus::exited(0);
  job.created_at = now_seconds() - an_hour - std::chrono::seconds(100);
  job.started_at = job.created_at;
  job.ended_at = now_seconds() - an_hour;
  return job;
}

CommandWorld::CommandWorld(ServerShell shell) : servers_(std::make_shared<LocalServers>(shell)) {
  configure("name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n");
  make_folders(home_);
  for (const char* name : {"a", "b"}) {
    make_folders(there(name));
  }
}

std::unique_ptr<RunningCommand> CommandWorld::start(std::vector<std::string> words,
                                                    const Terminals& terminals) {
  words.insert(words.begin(), {"--project", project_.string()});
  return std::make_unique<RunningCommand>(std::move(words), servers_, terminals);
}

CommandResult CommandWorld::run_in(const fs::path& project, std::vector<std::string> words) {
  words.insert(words.begin(), {"--project", project.string()});
  return RunningCommand(std::move(words), servers_, {}).wait();
}

jobs::Store CommandWorld::store() const {
  const fs::path beside_labmls = project_ / ".remote/remote-jobs";
  return jobs::Store(fs::exists(beside_labmls) ? beside_labmls : project_ / ".remote/jobs");
}

Job CommandWorld::stored(int key) const {
  return jobs::select(store().list().jobs, {.names = {std::to_string(key)}}).at(0);
}

Job CommandWorld::job(const std::string& server, const std::string& command,
                      const std::vector<std::string>& more) {
  std::vector<std::string> words = {"--json", "job-run", "--server", server, "--cmd", command};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = run(words);
  EXPECT_EQ(result.code, 0) << result;
  return stored(result.json().at("key").get<int>());
}

Job CommandWorld::ended_job(const std::string& server, const std::string& command,
                            const std::vector<std::string>& more) {
  const int key = job(server, command, more).key;
  EXPECT_NE(run({"--quiet", "job-wait", "--job", std::to_string(key)}).code, 130);
  return stored(key);
}

void CommandWorld::configure(const std::string& yaml) {
  make_folders(project_ / ".remote");
  write_file_atomic(project_ / ".remote/configs.yaml", yaml, 0600);
}

}  // namespace remote::test
