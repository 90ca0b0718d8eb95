#pragma once

#include <string>
#include <string_view>
#include <vector>

// Analyzes a user's command without running it. A command is a line for the server's shell. Only
// with_python() changes a command that is run; the other results are only displayed or checked.

namespace remote {

// The words that the shell would see, without quotes and backslashes, and with nothing expanded.
std::vector<std::string> shell_words(std::string_view command);

// The length of the first word in bytes, as written, including leading blanks.
std::size_t first_word_length(std::string_view command);

// The end of the first command in a line: at a shell operator, a comment or the end of the line; npos if a
// quote is not closed.
std::size_t end_of_command(std::string_view line);

// Whether a word names a Python interpreter: "python", "python3.11", "/opt/x/bin/python3".
bool is_python(std::string_view word);

// Whether a line starts with the name of a Python script, which a shell cannot find by its name alone.
bool script_alone(std::string_view line);

// Inserts `python` before each such script at the beginning of a command in the line: "A=1 train.py", "cd x
// && train.py", "time train.py". `with_paths`: also before "./train.py", which may specify Python itself.
std::string insert_python(std::string_view line, bool with_paths = false);

// Whether a word sets a variable: "NAME=VALUE".
bool is_assignment(std::string_view word);

// The last program of the pipe at the end of a line, whose exit status is the line's; "" if there is no pipe,
// or with pipefail.
std::string last_of_pipe(std::string_view line);

// The line with "&&" before its last command, if Python runs before it and it is an echo or the like whose
// exit status hides a failure: "python train.py && echo done" for "python train.py; echo done". Otherwise "".
std::string with_failures_of_list(std::string_view line);

// Whether a line ends while its program is still running, because of a '&' without a wait, `setsid -f`, or a
// detached session of tmux or screen.
bool goes_into_background(std::string_view line);

// Whether a command is a single program with arguments: no pipe, list, group, background or redirection
// outside quotes, and no leading assignment. Only such a command can be passed to another program as
// arguments.
bool is_plain_command(std::string_view command);

// If the first word ends in .py, or is an option of the interpreter (-m MODULE, -u FILE), puts the
// environment's `python` in front of the command.
std::string with_python(const std::string& command);

// Masks a line of a program's output, so that it can be shown and stored: the password of a URL, and the
// value of a header that contains a secret.
std::string mask_line(std::string line);

// Masks a program's output, in pieces of any size. Use one object per stream. Not thread-safe.
class OutputMask {
 public:
  // Returns the completed lines, masked. A line ends with '\n' or '\r'; very long lines are split.
  std::string take(std::string_view piece);
  // Returns the rest at the end of the output.
  std::string finish();

 private:
  std::string line_;
};

// Masks a variable's value, so that it can be shown.
std::string mask_value(std::string_view name, std::string_view value);

// Masks a command, so that it can be shown and stored: the value after a word that names a secret (--token X,
// --api-key=X, TOKEN=X, -p X, Bearer X), and the password of a URL. The rest is unchanged.
std::string mask_command(std::string_view command);

}  // namespace remote
