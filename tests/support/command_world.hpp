#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "jobs/store.hpp"
#include "support/local_connection.hpp"

namespace remote::test {

struct CommandResult {
  int code = -1;
  std::string out;
  std::string err;
};

// A stand-in for a stream of a terminal: what is written to fd() can be read at any time.
class Capture {
 public:
  Capture();
  int fd() const { return fd_.get(); }
  std::string text() const;

 private:
  UniqueFd fd_;
};

// A command that runs on a thread of its own. The destructor interrupts it, as Ctrl-C does, and waits for it.
class RunningCommand {
 public:
  RunningCommand(std::vector<std::string> words, std::shared_ptr<LocalServers> servers);
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // What it has printed so far.
  std::string out() const { return out_.text(); }
  std::string err() const { return err_.text(); }
  void interrupt() { cancel_.cancel(); }
  // Waits for its end; once.
  CommandResult wait();

 private:
  Capture out_;
  Capture err_;
  Cancel cancel_;
  int code_ = -1;
  std::thread thread_;
};

// A project whose servers `a` and `b` are pretended and have its folder, for commands that run in this
// process. Nothing of a command is left behind: LocalServers ends what runs there.
class CommandWorld {
 public:
  explicit CommandWorld(ServerShell shell = ServerShell::dash);

  // The words behind the program's name; --project is added.
  CommandResult run(const std::vector<std::string>& words) { return start(words)->wait(); }
  std::unique_ptr<RunningCommand> start(std::vector<std::string> words);

  const std::filesystem::path& project() const { return project_; }
  // Takes the place of .remote/configs.yaml.
  void configure(const std::string& yaml);
  LocalServers& servers() { return *servers_; }
  jobs::Store store() const { return jobs::Store(project_ / ".remote/jobs"); }

 private:
  TempFolder temp_{"remote-command-"};
  std::filesystem::path project_ = temp_.path() / "my project";
  std::shared_ptr<LocalServers> servers_;
};

}  // namespace remote::test
