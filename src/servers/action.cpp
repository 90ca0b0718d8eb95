#include "servers/action.hpp"

#include <algorithm>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "server/scripts.hpp"

namespace remote::servers {

std::string lean_script(std::string_view script, std::initializer_list<std::string_view> parts) {
  constexpr std::string_view mark = "#part ";
  std::string text;
  bool wanted = true;
  for (const std::string& line : split(script, '\n')) {
    const std::string_view bare = trim(line);
    if (bare.starts_with(mark)) {
      wanted = std::find(parts.begin(), parts.end(), bare.substr(mark.size())) != parts.end();
    } else if (wanted && !bare.empty() && bare.front() != '#') {
      text += line;
      text += '\n';
    }
  }
  return text;
}

Script& Script::set(std::string_view name, std::string_view value) {
  return append(name).append("=").append(shell_quote(value)).append("\n");
}

Script& Script::set_path(std::string_view name, std::string_view path) {
  return append(name).append("=").append(remote_path_word(path)).append("\n");
}

Script& Script::add(std::string_view file, std::initializer_list<std::string_view> parts) {
  return append(lean_script(scripts::text(file), parts));
}

Script& Script::call(std::string_view function, const std::vector<std::string>& words) {
  append(function);
  for (const std::string& word : words) {
    append(" ").append(shell_quote(word));
  }
  return append("\n");
}

Script& Script::call_paths(std::string_view function, const std::vector<std::string>& paths) {
  append(function);
  for (const std::string& path : paths) {
    append(" ").append(remote_path_word(path));
  }
  return append("\n");
}

Script& Script::append(std::string_view text) {
  text_ += text;
  return *this;
}

std::string Script::input() const {
  return "{\nexec </dev/null\n" + text_ + "\n}\n";
}

std::string Script::open_input() const {
  return "{\n" + text_ + "\n}\n";
}

std::string Script::guarded_input() const {
  return "{\n" + lean_script(scripts::text("guard.sh")) + text_ + "\n}\n";
}

ExecResult run_script(ssh::Connection& connection, const ActionRequest& request, AnswerReader& reader,
                      const Cancel& cancel) {
  std::string errors;
  ssh::ExecRequest exec;
  exec.what = request.what;
  exec.input = request.guarded ? request.script.guarded_input() : request.script.input();
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
