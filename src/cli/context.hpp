#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/cancel.hpp>
#include <remote/project.hpp>

#include "base/json.hpp"
#include "cli/show/stream.hpp"
#include "cli/words.hpp"
#include "ui/terminal.hpp"

namespace remote::cli {

// The options that every command takes.
struct GlobalOptions {
  std::optional<std::string> project;
  std::string color = "auto";
  int verbose = 0;  // how often -v was given
  bool quiet = false;
  bool json = false;  // also with --jsonl
  bool jsonl = false;
  bool strict = false;
};

// The surroundings of a command: this process's streams and the real servers, unless a test gives others.
struct Environment {
  ui::Descriptors streams;
  Cancel cancel;  // stops the command
  std::function<Project(const std::filesystem::path&, Hooks)> open = [](const auto& folder, Hooks hooks) {
    return Project(folder, std::move(hooks));
  };
};

// Names that may stand as the value of an option, for completion.
// `defined`: the names in `launches:` of configs.yaml.
// `help`: commands and topics.
enum class NameKind { servers, jobs, launches, past, tags, signals, defined, help };

// The answer to a yes/no question. none: the input ended first.
enum class Answer { yes, no, none };

// What every command uses. Made once by cli.cpp, and outlives the command. For one thread.
class Context {
 public:
  explicit Context(Environment environment = {});

  GlobalOptions options;
  Cancel cancel;
  ui::Terminal terminal;     // where to print: data to stdout, notices and errors to stderr
  int exit_code = 0;         // set by the command that ran
  bool only_parses = false;  // commands do nothing
  // What is printed if the command is interrupted: that it stops, and what continues on the servers. nullopt:
  // nothing, for a screen that is restored.
  std::optional<std::string> when_interrupted = "interrupted";
  // Takes the events of the API; show(event) unless the command sets its own.
  std::function<void(const Event&)> on_event;
  // Which names may be the value of an option, for completion. A command enters its options here.
  std::map<const CLI::Option*, NameKind> completers;
  // With --jsonl: takes what happens. Else absent.
  std::optional<EventStream> stream;
  // The subcommands behind which a command may stand as words, and those words.
  std::set<const CLI::App*> with_command;
  std::optional<CommandWords> command_words;
  std::vector<std::string> typed_words;  // behind the program's name
  // Whether a password may be asked for now (false where a live screen has the keyboard), and how many
  // questions were asked and not answered yet. Any thread.
  std::atomic<bool> may_ask = true;
  std::atomic<int> questions = 0;

  // The project of --project, or the nearest one from the current folder upwards. Opened on the first call.
  // Throws Error (usage).
  Project& project();

  // Prints what --json and --jsonl print for data.
  void print(const nlohmann::ordered_json& value);
  void show(const Error& error);
  // What went wrong in the same way on several servers is told once: "node-1, node-2 and 62 more: …".
  void show(const std::vector<Error>& errors);
  void show(const Event& event);
  // Asks a yes/no question until the answer is one. `usual`: what Enter means. `piped`: the answer may come
  // from a pipe; else there is none without a terminal. Throws Interrupted on a cancel.
  Answer ask_yes_no(const std::string& question, Answer usual = Answer::no, bool piped = false);
  void show_interrupted();
  // Waits. Throws Interrupted on a cancel.
  void pause(std::chrono::milliseconds time) const;
  // Shows the jobs and asks the question. Throws an Error that begins with `undone` unless the answer is yes,
  // and `cannot_ask` when stdin, which may be a pipe, has none.
  void confirm(const std::vector<Job>& jobs, const std::string& question, const std::string& undone,
               const Error& cannot_ask);

  // The folder of project(). Throws Error (usage).
  std::filesystem::path folder() const;
  // Shows what a project wants, and asks on a terminal; false where there is none.
  bool ask_trust(const std::vector<Demand>& demands);

 private:
  const Environment environment_;
  std::optional<Project> project_;
};

// Also of these: null where there is none.
using remote::or_null;
inline nlohmann::json or_null(const std::optional<Error>& error) {
  return error ? nlohmann::json(error->message()) : nlohmann::json(nullptr);
}
inline nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

// So many units of a time.
nlohmann::json count_or_null(const auto& time) {
  return time ? nlohmann::json(time->count()) : nlohmann::json(nullptr);
}

// The folder that the program was started in. Throws Error where it is gone.
std::filesystem::path current_folder();
// The path, from the current folder on where it is relative. Throws likewise.
std::filesystem::path absolute_path(const std::filesystem::path& path);

// What to try after the error: its own hint, then the option or command that does its remedy. Empty if there
// is nothing to say.
std::string hint_of(const Error& error);

// What went wrong in the same way on these servers: once, without a server's name where there are several.
struct SameErrors {
  Error error;
  std::vector<std::string> servers;
  std::string message() const;
};
std::vector<SameErrors> told_once(const std::vector<Error>& errors);

// The errors of those results, one for each server, that have one.
template <typename Result>
std::vector<Error> errors_of(const std::vector<Result>& results) {
  std::vector<Error> errors;
  for (const Result& result : results) {
    if (result.error) {
      errors.push_back(*result.error);
    }
  }
  return errors;
}

// Of more than three the first two and how many more: "node-1, node-2 and 62 more".
std::string some_of(const std::vector<std::string>& names);

// The first of these texts, which are foreign, and a line that counts the others.
std::vector<std::string> first_lines(const std::vector<std::string>& texts, std::size_t most);

}  // namespace remote::cli
