#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/events.hpp>

#include "ui/terminal.hpp"

// The stream of --jsonl: what happens during a command as events, each a JSON object on a line of stdout.
// docs/jsonl.md has the schema, which programs rely on: fields and events may be added, and none is changed
// or taken away without another version.

namespace remote::cli {

// Whose output a line is.
struct OutputSource {
  std::string server;
  std::optional<int> key{};   // of the job; a command of `run` has none
  std::optional<int> rank{};  // that wrote it, else of the job, where it is one of a launch
  std::vector<int> ranks{};   // all that wrote it, with FollowRequest::fold
};

// Every function prints one event, from any thread.
class EventStream {
 public:
  static constexpr int version = 1;

  explicit EventStream(ui::Terminal& terminal) : terminal_(terminal) {}

  // The servers that events of prepare name by their index.
  void name_servers(std::vector<std::string> names) { servers_ = std::move(names); }

  void begin(const std::string& command);
  void take(const Event& event);
  // `hint`: what to try, with the options that do it.
  void error(const Error& error, const std::string& hint);
  // `line` without its newline.
  void output(const OutputSource& source, OutputStream stream, std::string_view line);
  void ended(const Job& job);
  void verdict(const Verdict& verdict, std::string hint = {});
  // What --json prints.
  void result(const nlohmann::ordered_json& value);
  void end(int exit_code);

 private:
  // Prints the event with its time.
  void print(const char* name, const nlohmann::ordered_json& fields);

  ui::Terminal& terminal_;
  std::vector<std::string> servers_;
};

}  // namespace remote::cli
