#include "servers/run_command.hpp"

#include "base/shell_quote.hpp"
#include "scripts/scripts.hpp"

namespace remote::servers {

std::string guarded_script(std::string_view script) {
  std::string text = "{\n";
  text += scripts::text("guard.sh");
  text += script;
  return text + "\n}\n";
}

std::string run_script(const RunCommand& command) {
  std::string text = "project=" + remote_path_word(command.project) + "\n";
  text += "command=" + shell_quote(command.command) + "\n";
  text += "enter() {\n:\n";
  for (const auto& [name, value] : command.env) {
    text += "export " + name + "=" + shell_quote(value) + "\n";
  }
  text += command.activate;
  text += "\n}\n";
  text += scripts::text("run.sh");
  return guarded_script(text);
}

ExitStatus run_command(ssh::Connection& connection, const RunCommand& command, const ssh::Sink& sink,
                       const Cancel& cancel) {
  ssh::ExecRequest request;
  request.input = run_script(command);
  request.keep_input = true;
  request.sink = sink;
  return connection.exec(request, cancel).status;
}

}  // namespace remote::servers
