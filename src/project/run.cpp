// A command in the foreground of one or several servers, and a shell on one.

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "servers/logs.hpp"
#include "servers/python_env.hpp"
#include "servers/run_command.hpp"
#include "servers/terminal_session.hpp"

namespace remote::project {
namespace {

// The program's side of a terminal, for the thread that serves it.
TerminalSide side_of(Core& core, const TerminalSide& given) {
  TerminalSide side = given;
  side.size = core.asked_of_caller(given.size);
  side.begin = core.asked_of_caller(given.begin);
  return side;
}

ExitStatus run_on(Core& core, const config::Server& server, const RunRequest& request,
                  const ssh::Sink& output) {
  const servers::ProcessSpec process{request.command, servers::activation(core.config, server),
                                     job_env(server, request.env)};
  const auto connection = core.connector().connect(server, core.cancel());
  servers::CommandLog log(core.config, "run", server.name);
  const auto sink = [&](ssh::Stream stream, std::string_view data) {
    log.write(stream, data);
    if (output) {
      output(stream, data);
    }
  };
  try {
    const std::string project = core.config.project_path_on(server);
    const ExitStatus status =
        request.terminal ? servers::run_on_terminal(*connection, servers::terminal_script(project, process),
                                                    side_of(core, *request.terminal), sink, core.cancel())
                         : servers::run_command(*connection, project, process, sink, core.cancel());
    log.finish(status);
    return status;
  } catch (const Error& error) {
    log.give_up(error.message());
    throw;
  }
}

}  // namespace

std::vector<ServerRun> run(Core& core, const RunRequest& request) {
  if (trim(request.command).empty()) {
    throw Error::usage("cannot run", "the command is empty", "give the command to run");
  }
  const std::vector<config::Server> servers = core.servers(request.servers);
  if (request.terminal && servers.size() != 1) {
    throw Error::usage("cannot run", fmt::format("{} servers cannot share a terminal", servers.size()),
                       "name one server");
  }
  const OnOutput output = core.on_caller(request.on_output);
  const auto on_ended = core.on_caller(request.on_ended);
  std::vector<ServerRun> results;
  for (const config::Server& server : servers) {
    results.push_back({server.name, std::nullopt, std::nullopt});
  }
  servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t index) {
    ssh::Sink sink;
    if (output) {
      sink = [&output, index](ssh::Stream stream, std::string_view data) { output(index, stream, data); };
    }
    ServerRun& result = results[index];
    try {
      result.status = run_on(core, server, request, sink);
    } catch (const Error& error) {
      result.error = error.on(server.name);
    }
    if (on_ended) {
      on_ended(index, result);
    }
    return 0;
  });
  return results;
}

// What is typed and shown in a shell is no command's output: it is not logged.
ServerRun shell(Core& core, const ShellRequest& request) {
  const config::Server server = core.one_server(request.server, "shell", "a shell");
  ServerRun result{server.name, std::nullopt, std::nullopt};
  try {
    const servers::ProcessSpec process{"", servers::activation(core.config, server),
                                       job_env(server, request.env)};
    const auto connection = core.connector().connect(server, core.cancel());
    const auto output = core.on_caller(request.on_output);
    const auto sink = [&](ssh::Stream, std::string_view data) {
      if (output) {
        output(data);
      }
    };
    result.status = servers::run_on_terminal(
        *connection, servers::shell_script(core.config.project_path_on(server), process),
        side_of(core, request.terminal), sink, core.cancel());
  } catch (const Error& error) {
    result.error = error.on(server.name);
  }
  return result;
}

}  // namespace remote::project
