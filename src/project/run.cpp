// A command in the foreground of one or several servers.

#include "base/strings.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "servers/logs.hpp"
#include "servers/python_env.hpp"
#include "servers/run_command.hpp"

namespace remote::project {
namespace {

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
    const ExitStatus status =
        servers::run_command(*connection, core.config.project_path_on(server), process, sink, core.cancel());
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
  const OnOutput output = core.one_at_a_time(request.on_output);
  const auto on_ended = core.one_at_a_time(request.on_ended);
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

}  // namespace remote::project
