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

// Options that every command accepts.
struct GlobalOptions {
  std::optional<std::string> project;
  std::string color = "auto";
  int verbose = 0;  // how often -v was given
  bool quiet = false;
  bool json = false;  // also set by --jsonl
  bool jsonl = false;
  bool strict = false;
};

// The environment of a command: this process's streams and the real servers, unless a test replaces them.
struct Environment {
  ui::Descriptors streams;
  Cancel cancel;  // cancels the command
  std::function<Project(const std::filesystem::path&, Hooks)> open = [](const auto& folder, Hooks hooks) {
    return Project(folder, std::move(hooks));
  };
};

// The kinds of names that are values of options, for completion. `defined`: names in `launches:` of
// configs.yaml. `help`: commands and topics.
enum class NameKind { servers, jobs, launches, past, tags, signals, defined, help };

// The answer to a yes/no question. none: the input ended first.
enum class Answer { yes, no, none };

// State that every command uses. Created once in cli.cpp; outlives the command. Not thread-safe.
class Context {
 public:
  explicit Context(Environment environment = {});

  GlobalOptions options;
  Cancel cancel;
  ui::Terminal terminal;     // for all output: data to stdout, notices and errors to stderr
  int exit_code = 0;         // set by the command
  bool only_parses = false;  // parse only: the commands do nothing
  // The message after an interruption: what stops, and what continues on the servers. nullopt: none, for a
  // screen that is restored.
  std::optional<std::string> when_interrupted = "interrupted";
  // Handles the events of the API; show(event) unless the command replaces it.
  std::function<void(const Event&)> on_event;
  // For completion: the kind of names that an option accepts. Commands register their options here.
  std::map<const CLI::Option*, NameKind> completers;
  // Set with --jsonl: receives the events.
  std::optional<EventStream> stream;
  // The subcommands that may be followed by a command as separate words, and those words.
  std::set<const CLI::App*> with_command;
  std::optional<CommandWords> command_words;
  std::vector<std::string> typed_words;  // after the program's name
  // Whether prompting for a password is allowed now (false while a live screen uses the keyboard), and the
  // number of unanswered prompts. Thread-safe.
  std::atomic<bool> may_ask = true;
  std::atomic<int> questions = 0;

  // The project of --project, or the nearest one from the current folder upward. Opened on the first call.
  // Throws Error (usage).
  Project& project();

  // Prints a value for --json and --jsonl.
  void print(const nlohmann::ordered_json& value);
  void show(const Error& error);
  // Shows equal errors of several servers once: "node-1, node-2 and 62 more: …".
  void show(const std::vector<Error>& errors);
  void show(const Event& event);
  // Repeats a yes/no question until it is answered. `usual`: the answer for Enter. `piped`: accept an answer
  // from a pipe; otherwise returns `none` without a terminal. Throws Interrupted when cancelled.
  Answer ask_yes_no(const std::string& question, Answer usual = Answer::no, bool piped = false);
  void show_interrupted();
  // Waits. Throws Interrupted when cancelled.
  void pause(std::chrono::milliseconds time) const;
  // Shows the jobs and asks the question. Throws an Error that starts with `undone` unless the answer is yes,
  // and `cannot_ask` if stdin, which may be a pipe, has no answer.
  void confirm(const std::vector<Job>& jobs, const std::string& question, const std::string& undone,
               const Error& cannot_ask);

  // The folder of project(). Throws Error (usage).
  std::filesystem::path folder() const;
  // Shows a project's demands, and asks on a terminal; returns false without a terminal.
  bool ask_trust(const std::vector<Demand>& demands);

 private:
  const Environment environment_;
  std::optional<Project> project_;
};

// More overloads that return null for a missing value.
using remote::or_null;
inline nlohmann::json or_null(const std::optional<Error>& error) {
  return error ? nlohmann::json(error->message()) : nlohmann::json(nullptr);
}
inline nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

// The count of a duration, in its own unit.
nlohmann::json count_or_null(const auto& time) {
  return time ? nlohmann::json(time->count()) : nlohmann::json(nullptr);
}

// The working directory of the program. Throws Error if it no longer exists.
std::filesystem::path current_folder();
// The absolute path, relative to the current folder. Throws like current_folder().
std::filesystem::path absolute_path(const std::filesystem::path& path);

// What to try after the error: its hint, followed by the option or command for its remedy. May be empty.
std::string hint_of(const Error& error);

// Equal errors of these servers; `error` has no server name if there are several.
struct SameErrors {
  Error error;
  std::vector<std::string> servers;
  std::string message() const;
};
std::vector<SameErrors> told_once(const std::vector<Error>& errors);

// The errors in these results, which have at most one per server.
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

// Up to three names, or the first two and the number of others: "node-1, node-2 and 62 more".
std::string some_of(const std::vector<std::string>& names);

// The first of these texts, which are untrusted, followed by a line with the number of others.
std::vector<std::string> first_lines(const std::vector<std::string>& texts, std::size_t most);

}  // namespace remote::cli
