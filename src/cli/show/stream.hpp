#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/events.hpp>

#include "ui/terminal.hpp"

// The stream of --jsonl: the events of a command, each as a JSON object on a line of stdout. Programs rely on
// the schema in docs/jsonl.md: fields and events may be added, but none may be changed or removed without a
// new version.

namespace remote::cli {

// The source of a line of output.
struct OutputSource {
  std::string server;
  std::optional<int> key{};   // of the job; not set for a command of `run`
  std::optional<int> rank{};  // that wrote it, or else of the job, if it is part of a launch
  std::vector<int> ranks{};   // with FollowRequest::fold: all ranks that wrote it
};

// Each function prints one event. Thread-safe.
class EventStream {
 public:
  static constexpr int version = 1;

  explicit EventStream(ui::Terminal& terminal) : terminal_(terminal) {}

  // Sets the servers that events of prepare refer to by index.
  void name_servers(std::vector<std::string> names) { servers_ = std::move(names); }

  void begin(const std::string& command);
  void take(const Event& event);
  // `hint`: what to try, including options.
  void error(const Error& error, const std::string& hint);
  // `line`: without its newline.
  void output(const OutputSource& source, OutputStream stream, std::string_view line);
  void ended(const Job& job);
  void verdict(const Verdict& verdict, std::string hint = {});
  // The value that --json prints.
  void result(const nlohmann::ordered_json& value);
  void end(int exit_code);

 private:
  // Prints the event with the current time.
  void print(const char* name, const nlohmann::ordered_json& fields);

  ui::Terminal& terminal_;
  std::vector<std::string> servers_;
};

}  // namespace remote::cli
