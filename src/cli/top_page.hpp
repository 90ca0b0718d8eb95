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

// The contents and scroll position of the `remote top` screen: the servers with their jobs, a text about one
// job, or a question. Contacts no server, and reads no keys.
class TopPage {
 public:
  enum class Mode { servers, text, follow, confirm };

  std::vector<ServerSample> samples;
  std::chrono::milliseconds interval{};  // between two samples
  bool has_keys = false;                 // whether there is keyboard input
  Mode mode = Mode::servers;
  std::string title;              // of the text
  std::vector<std::string> text;  // as sent by the server
  std::string note;               // replaces the list of keys
  std::vector<Job> to_end;        // the jobs that the question is about
  std::size_t others = 0;         // number of other unfinished ranks in the launch

  std::vector<Job> jobs() const;
  // The selected job, as long as it is running.
  std::optional<Job> chosen() const;
  // Selects the next (1) or previous (-1) job.
  void move(int step);
  // Scrolls by a screen of this many rows.
  void turn_page(bool down, std::size_t rows);
  void show_text(std::string new_title, std::vector<std::string> lines);
  void show_servers();
  // Whether a server that has answered before is silent for too long, or is unreachable.
  bool is_silent(const std::string& server) const;
  // "1 other rank goes on".
  std::string others_go_on() const;
  // The whole screen: exactly `rows` rows, at least three.
  std::vector<std::string> lines(Context& context, std::size_t rows);

 private:
  std::chrono::seconds silent_after() const;
  std::vector<std::string> body(const Context& context, std::size_t rows);
  std::string footer(const Context& context) const;

  std::optional<JobId> selected_;
  bool show_selected_ = false;
  std::size_t top_ = 0;    // first visible line
  std::size_t below_ = 0;  // number of lines after the last visible one
};

// The stacks of a job's ranks, line by line.
std::vector<std::string> stack_lines(const StacksResult& result);

}  // namespace remote::cli
