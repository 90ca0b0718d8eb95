#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>
#include <remote/top.hpp>

#include "cli/context.hpp"

namespace remote::cli {

// What the screen of `remote top` shows, and which part of it: the servers with their jobs, a text about one
// job, or a question. It asks no server and reads no key.
class TopPage {
 public:
  enum class Mode { servers, text, follow, confirm };

  std::vector<ServerSample> samples;
  std::chrono::milliseconds interval{};  // between two samples
  bool has_keys = false;                 // whether somebody can type
  Mode mode = Mode::servers;
  std::string title;              // of a text
  std::vector<std::string> text;  // as the server sent it
  std::string note;               // shown in place of the keys
  std::vector<Job> to_end;        // what the question is about
  std::size_t others = 0;         // how many unfinished ranks of its launch it is not about

  std::vector<Job> jobs() const;
  // The job that the user chose, while it runs.
  std::optional<Job> chosen() const;
  // Chooses the next job (1) or the one before (-1).
  void move(int step);
  // Scrolls by a screen of so many rows.
  void turn_page(bool down, std::size_t rows);
  void show_text(std::string new_title, std::vector<std::string> lines);
  void show_servers();
  // Whether a server that once answered has said nothing for too long, or cannot be reached.
  bool is_silent(const std::string& server) const;
  // "1 other rank goes on".
  std::string others_go_on() const;
  // The whole screen: exactly so many rows, at least three.
  std::vector<std::string> lines(Context& context, std::size_t rows);

 private:
  std::chrono::seconds silent_after() const;
  std::vector<std::string> body(const Context& context, std::size_t rows);
  std::string footer(const Context& context) const;

  std::optional<JobId> selected_;
  bool show_selected_ = false;
  std::size_t top_ = 0;    // the first line that is shown
  std::size_t below_ = 0;  // how many lines there are behind the last
};

// The stacks of a job's ranks, line by line.
std::vector<std::string> stack_lines(const StacksResult& result);

}  // namespace remote::cli
