// A command in the foreground of one or several servers, and a shell or a debugger on one.

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "project/core.hpp"
#include "project/slurm.hpp"
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

// What the program's callback has thrown, by server. Any thread.
class Thrown {
 public:
  explicit Thrown(std::size_t servers) : errors_(servers) {}
  void keep(std::size_t index, const Error& error) {
    const std::lock_guard lock(mutex_);
    errors_[index] = error;
  }
  void rethrow(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    if (errors_[index]) {
      throw Error(*errors_[index]);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::optional<Error>> errors_;
};

// The callback as one whose Error ends its server's part alone.
OnOutput ending_one(const OnOutput& output, const std::shared_ptr<Thrown>& thrown) {
  if (!output) {
    return {};
  }
  return [output, thrown](std::size_t index, OutputStream stream, std::string_view data) {
    try {
      output(index, stream, data);
    } catch (const Error& error) {
      thrown->keep(index, error);
    }
  };
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
  const auto thrown = std::make_shared<Thrown>(servers.size());
  const OnOutput output = core.on_caller(ending_one(request.on_output, thrown));
  const auto on_ended = core.on_caller(request.on_ended);
  std::vector<ServerRun> results;
  for (const config::Server& server : servers) {
    results.push_back({server.name, std::nullopt, std::nullopt});
  }
  const SettledAtTheEnd settled(core);  // for who gives callbacks that refer to what is its own
  servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t index) {
    ssh::Sink sink;
    if (output) {
      sink = [&output, &thrown, index](ssh::Stream stream, std::string_view data) {
        thrown->rethrow(index);
        output(index, stream, data);
      };
    }
    ServerRun& result = results[index];
    try {
      const ExitStatus status = run_on(core, server, request, sink);
      core.settle();
      thrown->rethrow(index);
      result.status = status;
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

namespace {

// What is typed and shown in a shell is no command's output: it is not logged.
ServerRun shell(Core& core, const ShellRequest& request) {
  const config::Server server = core.one_server(request.server, "shell", "a shell");
  ServerRun result{server.name, std::nullopt, std::nullopt};
  try {
    Env env = request.env;
    const auto wanted = std::ranges::find(env, allocate_variable, &Env::value_type::first);
    if (wanted != env.end()) {
      if (!server.slurm) {
        throw Error::usage("shell",
                           fmt::format("server '{}' has no scheduler to give it a node", server.name),
                           "set scheduler: slurm for the login node in configs.yaml");
      }
      std::vector<std::string> options = sbatch_options(*server.slurm);
      options.push_back(wanted->second);
      wanted->second = join(options, " ");
    }
    const servers::ProcessSpec process{"", servers::activation(core.config, server), job_env(server, env)};
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

Attached attach(Core& core, const AttachRequest& request) {
  const config::Server& server = jobs::server_of(core.config, request.job);
  const std::string script = jobs::attach_script(request.job.remote_folder, request.job.id, request.wait,
                                                 servers::activation(core.config, server));
  TerminalSide side = side_of(core, request.terminal);
  side.type = "dumb";  // then readline there sends nothing that EscapeFilter would not let pass
  const auto output = core.on_caller(request.on_output);
  const auto connection = core.connector().connect(server, core.cancel());
  const SettledAtTheEnd settled(core);
  const ExitStatus status = servers::run_on_terminal(
      *connection, script, side,
      [&](ssh::Stream, std::string_view data) {
        if (output) {
          output(data);
        }
      },
      core.cancel());
  switch (status.code().value_or(-1)) {  // of attach.py
    case 0:
      return Attached::goes_on;
    case 10:
      return Attached::left;
    case 11:
      return Attached::taken;
    case 12:
      return Attached::ended;
    case 13:
      return Attached::gone;
    default:
      throw Error("cannot attach to the debugger", status.describe(), "see what the server has printed")
          .on(server.name);
  }
}

}  // namespace

}  // namespace remote::project

namespace remote {

Attached Project::attach(const AttachRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::attach(core, request); });
}

std::vector<ServerRun> Project::run(const RunRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::run(core, request); });
}

ServerRun Project::shell(const ShellRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::shell(core, request); });
}

}  // namespace remote
