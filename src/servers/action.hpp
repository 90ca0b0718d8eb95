#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/cancel.hpp>

#include "servers/answer.hpp"
#include "ssh/connection.hpp"

// One kind of action on a server: a request to the server's program is composed of values, files and calls,
// one exec runs it (docs/protocol.md, Requests), and its answer is read into a struct.

namespace remote::servers {

// Composes the request: variables, files of src/server, and calls of their functions. Values are data.
class Script {
 public:
  // NAME='VALUE'
  Script& set(std::string_view name, std::string_view value);
  // The same for a path on the server: "~/x" is in the home folder.
  Script& set_path(std::string_view name, std::string_view path);
  // Sources the file of src/server.
  Script& add(std::string_view file);
  // FUNCTION 'WORD'…
  Script& call(std::string_view function, const std::vector<std::string>& words = {});
  // The same for paths, as set_path() takes them.
  Script& call_paths(std::string_view function, const std::vector<std::string>& paths);
  // sh text that was composed elsewhere
  Script& append(std::string_view text);

  const std::string& text() const { return text_; }
  // As the program's stdin: nothing of it runs when it arrives cut short. Its commands have /dev/null as
  // stdin.
  std::string input() const;
  // The same for a script that sees to its stdin itself.
  std::string open_input() const;
  // The same, with this as its stdin.
  std::string data_input(std::string_view data) const;
  // The same behind guard.sh: when the channel's stdin ends before the script does (Ctrl-C, a lost link), the
  // script and its process group get TERM, and KILL five seconds later. For ExecRequest::keep_input.
  std::string guarded_input() const;

 private:
  std::string text_;
};

// What an action needs beside its answer.
struct ActionRequest {
  std::string what = "action";  // for the log: "state of 3 jobs"
  Script script = {};
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds silence{0};  // 0: none; how long nothing may come
  // It answers at once, and other servers wait for that: see Connection::be_watchful.
  bool watchful = false;
  // Must not outlive this program: see Script::guarded_input.
  bool guarded = false;
  std::size_t max_output = std::size_t{16} << 20U;  // more is an Error
  ssh::Sink log = {};                               // gets a copy of all output as it comes
  std::string input = {};                           // what the script finds on its stdin; not with `guarded`
};

// An action whose answer is read into an `Answer`, which is a struct with
//   void take(AnswerLine& line);          takes in one line; throws Error for one that it does not understand
//   void other(std::string_view line);    may be absent: gets a line that is no answer
//   void check() const;                   may be absent: throws Error when something is missing
//   ExecResult ended;                may be absent: how the script ended, and the end of its stderr
// The answer ends with "@remote1 end" unless it has `ended`, by which the caller judges.
template <typename Answer>
struct Action : ActionRequest {};

// Runs the script, and hands its stdout to the reader. Returns how it ended, and the end of its stderr.
ExecResult run_script(ssh::Connection& connection, const ActionRequest& request, AnswerReader& reader,
                      const Cancel& cancel);

template <typename Answer>
AnswerReader reader_into(Answer& answer) {
  AnswerReader::Other other;
  if constexpr (requires { answer.other(std::string_view()); }) {
    other = [&answer](std::string_view line) { answer.other(line); };
  }
  return AnswerReader([&answer](AnswerLine& line) { answer.take(line); }, std::move(other));
}

template <typename Answer>
void finish_answer(Answer& answer, const AnswerReader& reader, const ExecResult& result) {
  if constexpr (requires { answer.ended; }) {
    reader.finish();
    answer.ended = result;
  } else {
    reader.finish_with_closing_line(result.status.success() ? "" : result.describe());
  }
  if constexpr (requires { answer.check(); }) {
    answer.check();
  }
}

// Runs an action and reads its answer into `answer`. Throws Error, also when the answer is not understood,
// and Interrupted.
template <typename Answer>
Answer run_action(ssh::Connection& connection, const Action<Answer>& action, const Cancel& cancel,
                  Answer answer = {}) {
  AnswerReader reader = reader_into(answer);
  finish_answer(answer, reader, run_script(connection, action, reader, cancel));
  return answer;
}

// Reads a text that a script has answered.
template <typename Answer>
Answer read_answer(std::string_view out, Answer answer = {}) {
  AnswerReader reader = reader_into(answer);
  reader.add(out);
  finish_answer(answer, reader, {});
  return answer;
}

}  // namespace remote::servers
