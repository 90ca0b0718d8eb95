#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "jobs/store.hpp"
#include "support/local_connection.hpp"

namespace remote::test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

struct CommandResult {
  int code = -1;
  std::string out;
  std::string err;

  // Parses stdout as a single JSON value; throws if it is anything else.
  nlohmann::json json() const { return nlohmann::json::parse(out); }
  std::vector<std::string> lines() const;
};
std::ostream& operator<<(std::ostream& stream, const CommandResult& result);

// Matches the result of a command: Ends(0, "text
// ", HasSubstr("words")).
template <typename Out, typename Err>
auto Ends(int code, const Out& out, const Err& err) {
  return ::testing::AllOf(::testing::Field("code", &CommandResult::code, code),
                          ::testing::Field("out", &CommandResult::out, ::testing::Matcher<std::string>(out)),
                          ::testing::Field("err", &CommandResult::err, ::testing::Matcher<std::string>(err)));
}
// Usage error: exit code 2, nothing on stdout, and this text on stderr.
inline auto Refused(const std::string& words) {
  return Ends(2, "", ::testing::HasSubstr(words));
}

// A file that stands in for a file or a pipe. Everything written to fd() can be read at any time.
class Capture {
 public:
  Capture();
  int fd() const { return fd_.get(); }
  std::string text() const;

 private:
  UniqueFd fd_;
};

// A terminal of 24 rows and 100 columns, without echo. A thread reads what is written to fd().
class PretendedTerminal {
 public:
  // `typed` is the pending input; "\x04" at the beginning of a line is end of file.
  explicit PretendedTerminal(const std::string& typed = "");
  ~PretendedTerminal();
  PretendedTerminal(const PretendedTerminal&) = delete;
  PretendedTerminal& operator=(const PretendedTerminal&) = delete;

  int fd() const { return slave_.get(); }
  std::string text() const;
  // Closes fd() and returns all output.
  std::string finish();

 private:
  UniqueFd master_;
  UniqueFd slave_;
  mutable std::mutex mutex_;
  std::string text_;
  std::thread reader_;
};

// Which streams of a command are terminals, and the input on stdin (through a pipe if stdin is not a
// terminal). The other streams are /dev/null and files.
struct Terminals {
  bool in = false;
  bool out = false;
  bool err = false;
  std::string typed{};
};
// All streams are terminals, as for an interactive user.
inline Terminals screen(const std::string& typed = "") {
  return {true, true, true, typed};
}

// Input from a pipe: "echo y | remote …".
inline Terminals piped(const std::string& text) {
  return {false, false, false, text};
}

// Sets an environment variable of this process (or unsets it, with nullptr) for the lifetime of the object.
class Variable {
 public:
  Variable(std::string name, const char* value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// A command that runs on its own thread. The destructor interrupts it, like Ctrl-C, and waits for it.
class RunningCommand {
 public:
  RunningCommand(std::vector<std::string> words, std::shared_ptr<LocalServers> servers,
                 const Terminals& terminals = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // The output so far.
  std::string out() const { return out_screen_ ? out_screen_->text() : out_.text(); }
  std::string err() const { return err_screen_ ? err_screen_->text() : err_.text(); }
  void interrupt() { cancel_.cancel(); }
  // Waits until it ends. Call it once.
  CommandResult wait();

 private:
  Capture out_;
  Capture err_;
  std::optional<PretendedTerminal> in_screen_;
  std::optional<PretendedTerminal> out_screen_;
  std::optional<PretendedTerminal> err_screen_;
  Cancel cancel_;
  int code_ = -1;
  std::thread thread_;
};

// The record of a job on server `a` that succeeded an hour ago and has no folder there.
Job old_record(const std::string& command);

// A project with simulated servers `a` and `b`, which have the project's folder. Commands run in this
// process, with an empty home folder of their own. LocalServers kills everything that still runs on the
// servers.
class CommandWorld {
 public:
  explicit CommandWorld(ServerShell shell = ServerShell::dash);

  // Takes the arguments after the program's name; adds --project.
  CommandResult run(const std::vector<std::string>& words, const Terminals& terminals = {}) {
    return start(words, terminals)->wait();
  }
  std::unique_ptr<RunningCommand> start(std::vector<std::string> words, const Terminals& terminals = {});
  // Runs a command in another project folder, with the same servers.
  CommandResult run_in(const std::filesystem::path& project, std::vector<std::string> words);

  const std::filesystem::path& project() const { return project_; }
  const std::filesystem::path& home() const { return home_; }
  // Replaces .remote/configs.yaml.
  void configure(const std::string& yaml);
  LocalServers& servers() { return *servers_; }
  // The project's folder on a server.
  std::filesystem::path there(const std::string& server) { return servers_->home(server) / "proj"; }
  // From now on these servers are unreachable.
  void cut_off(const std::vector<std::string>& names) { servers_->set_faults({.unreachable = names}); }
  jobs::Store store() const;
  // The record of the job with this key, and a file in its folder in .remote/jobs.
  Job stored(int key) const;
  std::filesystem::path brought(const Job& job, const char* file) const {
    return store().job_folder(job.id) / file;
  }
  // Starts a job with `job-run`, which must succeed; returns its record. `more`: further options.
  Job job(const std::string& server, const std::string& command, const std::vector<std::string>& more = {});
  // Starts a job and waits until it ends.
  Job ended_job(const std::string& server, const std::string& command,
                const std::vector<std::string>& more = {});

 private:
  TempFolder temp_{"remote-command-"};
  std::filesystem::path project_ = temp_.path() / "my project";
  std::filesystem::path home_ = temp_.path() / "home";
  std::shared_ptr<LocalServers> servers_;
  // Hides the user's own environment: keys and color settings.
  Variable home_variable_{"HOME", home_.c_str()};
  Variable agent_{"SSH_AUTH_SOCK", nullptr};
  Variable no_color_{"NO_COLOR", nullptr};
  Variable term_{"TERM", "xterm"};
};

}  // namespace remote::test
