#include "support/command_world.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.hpp"
#include "project/core.hpp"
#include "support/paths.hpp"

namespace remote::test {

Capture::Capture() : fd_(::memfd_create("capture", MFD_CLOEXEC)) {
  // Appending, so that a reader does not move the place of the writer.
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

RunningCommand::RunningCommand(std::vector<std::string> words, std::shared_ptr<LocalServers> servers)
    : thread_([this, words = std::move(words), servers = std::move(servers)] {
        const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        cli::Environment environment;
        environment.streams = {nothing.get(), out_.fd(), err_.fd()};
        environment.cancel = cancel_;
        environment.open = [&servers](const auto& folder, Hooks hooks) {
          hooks.rsync_helper = remote_binary;
          return Project(
              std::make_unique<project::Core>(config::load(folder), std::move(hooks), share(servers)));
        };
        code_ = cli::run(words, std::move(environment));
      }) {}

RunningCommand::~RunningCommand() {
  if (thread_.joinable()) {
    interrupt();
    thread_.join();
  }
}

CommandResult RunningCommand::wait() {
  thread_.join();
  return {code_, out(), err()};
}

CommandWorld::CommandWorld(ServerShell shell) : servers_(std::make_shared<LocalServers>(shell)) {
  configure("name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n");
  for (const char* name : {"a", "b"}) {
    make_folders(servers_->home(name) / "proj");
  }
}

std::unique_ptr<RunningCommand> CommandWorld::start(std::vector<std::string> words) {
  words.insert(words.begin(), {"--project", project_.string()});
  return std::make_unique<RunningCommand>(std::move(words), servers_);
}

void CommandWorld::configure(const std::string& yaml) {
  make_folders(project_ / ".remote");
  write_file_atomic(project_ / ".remote/configs.yaml", yaml);
}

}  // namespace remote::test
