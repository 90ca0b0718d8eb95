// Runs a command in the foreground on one or more servers, or a shell or debugger on one.

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "project/core.hpp"
#include "project/slurm.hpp"
#include "servers/agent.hpp"
#include "servers/fanout.hpp"
#include "servers/logs.hpp"
#include "servers/python_env.hpp"
#include "servers/run_command.hpp"
#include "wire/text.hpp"

namespace remote::project {
namespace {

// Makes the program's callbacks for a terminal callable from the thread that serves it.
TerminalSide side_of(Core& core, const TerminalSide& given) {
  TerminalSide side = given;
  side.size = core.asked_of_caller(given.size);
  side.begin = core.asked_of_caller(given.begin);
  return side;
}

// Tells the program that the login shell of this server is slow.
servers::OnSlowLogin slow_login_of(Core& core, const std::string& server) {
  return [&core, server] { core.tell(SlowLogin{server}); };
}

ExitStatus run_on(Core& core, const config::Server& server, const RunRequest& request,
                  const ssh::Sink& output) {
  servers::ProcessSpec process{request.command, servers::activation(core.config, server),
                               job_env(server, request.env)};
  process.environment = servers::python_environment(core.config, server);
  wire::RunRequest run = servers::make_run(core.config.project_path_on(server), process);
  const auto connection = core.connector().connect(server, core.cancel());
  servers::CommandLog log(core.config, "run", server.name);
  const auto sink = [&](ssh::Stream stream, std::string_view data) {
    log.write(stream, data);
    if (output) {
      output(stream, data);
    }
  };
  try {
    ExitStatus status = ExitStatus::exited(0);
    if (request.terminal) {
      run.terminal.emplace();
      status = servers::run_with_input(*connection, std::move(run), side_of(core, *request.terminal), sink,
                                       core.cancel(), slow_login_of(core, server.name));
    } else {
      status = servers::run_in_foreground(*connection, run, sink, core.cancel(), {},
                                          slow_login_of(core, server.name));
    }
    log.finish(status);
    return status;
  } catch (const Error& error) {
    log.give_up(error.message());
    throw;
  }
}

// Errors thrown by the program's callback, by server. Thread-safe.
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

// Wraps the callback so that its Error ends only that server's part.
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
  const SettledAtTheEnd settled(core);  // callbacks of the caller may refer to its local variables
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

// Adds the variables that Slurm's programs need, unless the request sets them. Returns a PATH that includes
// these programs; "" if the server has none.
std::string add_slurm_variables(ssh::Connection& connection, Env& env, const Cancel& cancel) {
  std::string path;
  const servers::AgentQuestion question{.what = "search for Slurm",
                                        .request = wire::SlurmProgramsRequest{},
                                        .timeout = std::chrono::seconds(60)};
  const auto reply =
      servers::take_reply<wire::SlurmProgramsReply>(servers::ask_agent(connection, question, cancel));
  for (const std::string& variable : reply.variables) {
    const std::string name = variable.substr(0, variable.find('='));
    const std::string value = variable.substr(std::min(name.size() + 1, variable.size()));
    if (name == "PATH") {
      path = value;
    } else if ((name == "LD_LIBRARY_PATH" || name.starts_with("SLURM_")) && wire::is_word(name, "_") &&
               std::ranges::find(env, name, &Env::value_type::first) == env.end()) {
      env.emplace_back(name, value);
    }
  }
  return path;
}

// Input and output of a shell are not logged: they are not the output of a command.
ServerRun shell(Core& core, const ShellRequest& request) {
  const config::Server server = core.one_server(request.server, "shell", "a shell");
  ServerRun result{server.name, std::nullopt, std::nullopt};
  try {
    Env env = request.env;
    wire::LoginShell login;
    const auto wanted = std::ranges::find(env, allocate_variable, &Env::value_type::first);
    if (wanted != env.end()) {
      if (!server.slurm) {
        throw Error::usage("shell",
                           fmt::format("server '{}' has no scheduler to give it a node", server.name),
                           "set scheduler: slurm for the login node in configs.yaml");
      }
      std::vector<std::string> options = sbatch_options(*server.slurm);
      options.push_back(wanted->second);
      login.node = wire::ShellNode{.options = split_words(join(options, " "))};
      env.erase(wanted);
    }
    const auto connection = core.connector().connect(server, core.cancel());
    if (login.node) {
      login.node->path = add_slurm_variables(*connection, env, core.cancel());
    }
    servers::ProcessSpec process{"", servers::activation(core.config, server), job_env(server, env)};
    process.environment = servers::python_environment(core.config, server);
    wire::RunRequest run = servers::make_run(core.config.project_path_on(server), process);
    run.terminal.emplace();
    run.shell = std::move(login);
    const auto output = core.on_caller(request.on_output);
    const auto sink = [&](ssh::Stream, std::string_view data) {
      if (output) {
        output(data);
      }
    };
    result.status = servers::run_with_input(*connection, std::move(run), side_of(core, request.terminal),
                                            sink, core.cancel(), slow_login_of(core, server.name));
  } catch (const Error& error) {
    result.error = error.on(server.name);
  }
  return result;
}

Attached attach(Core& core, const AttachRequest& request) {
  const config::Server& server = jobs::server_of(core.config, request.job);
  const RemoteFolder& folder = request.job.remote_folder;
  wire::RunRequest run{.project = folder.project,
                       .activate = servers::inline_files(servers::activation(core.config, server))};
  run.debugger = wire::DebuggerAttachment{
      .place = {folder.project, folder.jobs_folder}, .job = request.job.id.text(), .wait = request.wait};
  if (request.terminal.input_is_terminal) {
    run.terminal.emplace();
  }
  TerminalSide side = side_of(core, request.terminal);
  side.type = "dumb";  // so that readline there only sends what EscapeFilter passes
  const auto output = core.on_caller(request.on_output);
  const auto connection = core.connector().connect(server, core.cancel());
  const SettledAtTheEnd settled(core);
  const ssh::Sink sink = [&](ssh::Stream, std::string_view data) {
    if (output) {
      output(data);
    }
  };
  const ExitStatus status = servers::run_with_input(*connection, std::move(run), side, sink, core.cancel());
  switch (status.code().value_or(-1)) {  // exit codes of attach.py
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
      throw Error("cannot attach to the debugger", status.describe(), "check the server's output")
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
