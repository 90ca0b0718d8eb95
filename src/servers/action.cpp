#include "servers/action.hpp"

#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "servers/shell_text.hpp"

// A script is kept as the request that it becomes (docs/protocol.md): lines of a mark and a name or a value,
// which src/server/main.sh reads.

namespace remote::servers {
namespace {

std::string line_of(char mark, std::string_view text) {
  return std::string(1, mark).append(text).append("\n");
}

// A line, and one more for each line break.
std::string value_line(std::string_view value) {
  if (value.find('\0') != std::string_view::npos) {
    throw Error::usage("cannot pass a value to a server", "it contains a NUL byte", "take the byte out");
  }
  return line_of('-', replace_all(std::string(value), "\n", "\n+"));
}

std::string path_line(std::string_view path) {
  if (path.starts_with('/')) {
    return value_line(path);
  }
  if (path.find('\n') != std::string_view::npos) {
    throw Error::usage("cannot use the path '" + visible_line(path, 200) + "'", "it contains a line break",
                       "rename it");
  }
  if (path.empty() || path == "~") {
    return line_of('~', "~");
  }
  return line_of('~', (path.starts_with("~/") ? "" : "~/") + std::string(path));
}

bool is_value(std::string_view line) {
  return line.starts_with('-') || line.starts_with('~');
}

// The value, but for a path, whose first line is lines[i]; i moves behind it.
std::string take_value(const std::vector<std::string>& lines, std::size_t& i) {
  std::string value = lines[i++].substr(1);
  while (lines[i].starts_with('+')) {
    value.append("\n").append(lines[i++], 1);
  }
  return value;
}

// The same as an sh word.
std::string take_word(const std::vector<std::string>& lines, std::size_t& i) {
  return lines[i].front() == '~' ? remote_path_word(lines[i++].substr(1)) : shell_quote(take_value(lines, i));
}

}  // namespace

Script& Script::set(std::string_view name, std::string_view value) {
  text_ += line_of('=', name) + value_line(value);
  return *this;
}

Script& Script::set_path(std::string_view name, std::string_view path) {
  text_ += line_of('=', name) + path_line(path);
  return *this;
}

Script& Script::add(std::string_view file) {
  text_ += line_of('<', file);
  return *this;
}

Script& Script::call(std::string_view function, const std::vector<std::string>& words) {
  text_ += line_of(':', function);
  for (const std::string& word : words) {
    text_ += value_line(word);
  }
  return *this;
}

Script& Script::call_paths(std::string_view function, const std::vector<std::string>& paths) {
  text_ += line_of(':', function);
  for (const std::string& path : paths) {
    text_ += path_line(path);
  }
  return *this;
}

Script& Script::append(std::string_view text) {
  return call("eval", {std::string(text)});
}

std::string Script::input() const {
  return text_ + ".null\n";
}

std::string Script::open_input() const {
  return text_ + ".open\n";
}

std::string Script::data_input(std::string_view data) const {
  return text_ + ".data " + std::to_string(data.size()) + "\n" + std::string(data);
}

std::string Script::guarded_input() const {
  return text_ + ".guard\n";
}

std::string shell_text(const Script& script) {
  std::string text;
  const std::vector<std::string> lines = split(script.text(), '\n');
  for (std::size_t i = 0; i + 1 < lines.size();) {
    const std::string_view line = lines[i++];
    if (line == ":eval") {
      text += take_value(lines, i);
    } else if (line.front() == '=') {
      text.append(line.substr(1)).append("=").append(take_word(lines, i)).append("\n");
    } else if (line.front() == '<') {
      text.append(". \"$remote_program/").append(line.substr(1)).append("\"\n");
    } else {
      text += line.substr(1);
      while (is_value(lines[i])) {
        text.append(" ").append(take_word(lines, i));
      }
      text += '\n';
    }
  }
  return text;
}

void append_steps(Script& script, const Script& more) {
  const std::vector<std::string> lines = split(more.text(), '\n');
  for (std::size_t i = 0; i + 1 < lines.size();) {
    const std::string& line = lines[i++];
    const std::string name = line.substr(1);
    if (line.front() == '<') {
      script.add(name);
    } else if (line.front() == '=' && lines[i].front() == '~') {
      script.set_path(name, lines[i++].substr(1));
    } else if (line.front() == '=') {
      script.set(name, take_value(lines, i));
    } else {
      std::vector<std::string> words;
      while (is_value(lines[i])) {
        words.push_back(take_value(lines, i));
      }
      script.call(name, words);
    }
  }
}

ExecResult run_script(ssh::Connection& connection, const ActionRequest& request, AnswerReader& reader,
                      const Cancel& cancel) {
  std::string errors;
  ssh::ExecRequest exec;
  exec.what = request.what;
  exec.input = request.guarded         ? request.script.guarded_input()
               : request.input.empty() ? request.script.input()
                                       : request.script.data_input(request.input);
  exec.keep_input = request.guarded;
  exec.timeout = request.timeout;
  exec.silence = request.silence;
  exec.watchful = request.watchful;
  exec.max_output = request.max_output;
  exec.complete = [&reader] { return reader.closed(); };
  exec.sink = [&](ssh::Stream stream, std::string_view data) {
    if (request.log) {
      request.log(stream, data);
    }
    if (stream == ssh::Stream::out) {
      reader.add(data);
    } else {
      append_end(errors, data);
    }
  };
  ExecResult result = connection.exec(exec, cancel);
  result.err = std::move(errors);
  return result;
}

}  // namespace remote::servers
