#pragma once

#include <string>
#include <string_view>
#include <vector>

// What can be seen in a user's command without running it. A command is a line for the server's shell;
// nothing here changes a byte of what is run, except with_python.

namespace remote {

// The words that the shell would see, quotes and backslashes taken away, nothing expanded.
std::vector<std::string> shell_words(std::string_view command);

// How many bytes the first word takes, blanks before it included, as it is written.
std::size_t first_word_length(std::string_view command);

// Whether a word names a Python interpreter: "python", "python3.11", "/opt/x/bin/python3".
bool is_python(std::string_view word);

// Whether a line begins with the name of a Python script, which no shell finds by its name alone.
bool script_alone(std::string_view line);

// The line with `python` before each such script that one of its commands begins with: "A=1 train.py",
// "cd x && train.py", "time train.py". `with_paths`: also before "./train.py", which may name Python itself.
std::string insert_python(std::string_view line, bool with_paths = false);

// Whether a word sets a variable: "NAME=VALUE".
bool is_assignment(std::string_view word);

// The last program of the pipe that a line ends with, whose exit status is the line's; "" without a pipe, and
// with pipefail.
std::string last_of_pipe(std::string_view line);

// Whether a line ends while its program runs on: by a '&' that nothing waits for, `setsid -f`, or a detached
// session of tmux or screen.
bool goes_into_background(std::string_view line);

// Whether a command is one program with arguments: no pipe, list, group, background or redirection outside of
// quotes, and no assignment in front. Only such a command can be handed to another program as arguments.
bool is_plain_command(std::string_view command);

// A command whose first word ends in .py, or is an option (of the interpreter: -m MODULE, -u FILE), gets the
// environment's `python` in front.
std::string with_python(const std::string& command);

// The file that a line runs first, as it is written: the script of `python -u train.py`, `A=1 bash run.sh` or
// `python train.py | tee log`, or the program of `./train`; "sub/train.py" for `cd sub && python train.py`.
// "": a program that PATH finds, a module, or another command comes first.
std::string script_of(std::string_view command);

// A line of a program's output as it may be shown and stored: the password of a URL and the value of a header
// that holds a secret are masked.
std::string mask_line(std::string line);

// Masks a program's output, in pieces of any size. One stream, one thread.
class OutputMask {
 public:
  // Returns the completed lines, masked. A line ends with '\n' or '\r'; a very long one is split.
  std::string take(std::string_view piece);
  // Returns the rest at the end of the output.
  std::string finish();

 private:
  std::string line_;
};

// A variable's value as it may be shown.
std::string mask_value(std::string_view name, std::string_view value);

// A command as it may be shown and stored: what follows a word that names a secret (--token X, --api-key=X,
// TOKEN=X, -p X, Bearer X) and a URL's password are masked. The rest is as it was.
std::string mask_command(std::string_view command);

}  // namespace remote
