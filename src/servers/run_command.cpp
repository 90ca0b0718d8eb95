#include "servers/run_command.hpp"

#include <limits>

#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "servers/action.hpp"
#include "servers/answer.hpp"
#include "servers/shell_text.hpp"

namespace remote::servers {

std::string run_script(const std::string& project, const ProcessSpec& process) {
  Script environment;
  for (const auto& [name, value] : process.env) {
    check_variable(name);
    environment.call("export", {name + "=" + value});
  }
  environment.append(process.activate);
  Script script;
  script.set_path("project", project)
      .set("command", process.command)
      .set("environment", shell_text(environment));
  return script.add("actions/run.sh").guarded_input();
}

ExitStatus run_command(ssh::Connection& connection, const std::string& project, const ProcessSpec& process,
                       const ssh::Sink& sink, const Cancel& cancel) {
  // The command's output begins behind this line, which run.sh prints to both streams.
  const auto begins = [](std::string_view line) { return line == std::string(answer_mark) + "run"; };
  Greeting out;
  Greeting err;
  ssh::ExecRequest request;
  request.input = run_script(project, process);
  request.keep_input = true;
  request.max_output = std::numeric_limits<std::size_t>::max();  // it is passed on as it comes
  request.sink = [&](ssh::Stream which, std::string_view data) {
    data = (which == ssh::Stream::out ? out : err).strip(data, begins);
    if (!data.empty()) {
      sink(which, data);
    }
  };
  const ExitStatus status = connection.exec(request, cancel).status;
  if (!out.over()) {
    check_refusal(out.text());
    throw login_shell_ended(ExecResult{status, {}, err.text()}.describe());
  }
  return status;
}

}  // namespace remote::servers
