#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/project.hpp>

#include "ui/terminal.hpp"

namespace CLI {
class Option;
}

namespace remote::cli {

// The options that every command takes.
struct GlobalOptions {
  std::optional<std::string> project;
  std::string color = "auto";
  int verbose = 0;  // how often -v was given
  bool quiet = false;
  bool json = false;
};

// What a command meets around it: this process's streams and the real servers, unless a test brings its own.
struct Environment {
  ui::Descriptors streams;
  Cancel cancel;  // stops the command
  std::function<Project(const std::filesystem::path&, Hooks)> open = [](const auto& folder, Hooks hooks) {
    return Project(folder, std::move(hooks));
  };
};

// Names that may stand as the value of an option, for completion.
enum class NameKind { servers, jobs, tags, signals };

// What a command has at hand. Made once by cli.cpp; outlives the command. One thread.
class Context {
 public:
  explicit Context(Environment environment = {});

  GlobalOptions options;
  Cancel cancel;
  ui::Terminal terminal;  // where to print: data to stdout, notices and errors to stderr
  int exit_code = 0;      // set by the command that ran
  // Takes the events of the API; show(event) unless the command sets its own.
  std::function<void(const Event&)> on_event;
  // Which names may stand as the value of an option: each option that takes some is entered by its command.
  std::map<const CLI::Option*, NameKind> completers;

  // The project's folder: --project, or found by walking up from the current folder. Throws Error (usage).
  std::filesystem::path folder() const;
  // Opened when it is first asked for. Throws Error (usage).
  Project& project();

  void show(const Error& error);
  void show(const std::vector<Error>& errors);
  void show(const Event& event);
  // Shows the jobs and asks the question. Throws Error, whose text begins with `undone`, unless the answer is
  // yes, and `cannot_ask` when nobody is there to answer.
  void confirm(const std::vector<Job>& jobs, const std::string& question, const std::string& undone,
               const Error& cannot_ask);

 private:
  const Environment environment_;
  std::optional<Project> project_;
};

}  // namespace remote::cli
