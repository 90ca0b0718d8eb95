// `remote run --cmd C`: C in the project's environment on one, some or all servers, with its output as it
// comes.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "servers/fanout.hpp"
#include "servers/logs.hpp"
#include "servers/python_env.hpp"
#include "servers/run_command.hpp"
#include "ui/lines.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::string command;
  std::vector<std::string> servers;
  EnvOptions env;
};

// JSON is one value, so all of it is held in memory: output past this is an error.
constexpr std::size_t most_json_output = std::size_t{64} << 20U;

// Puts one server's output on the screen: as it is when it is the only one, else in whole lines with its
// name.
class Screen {
 public:
  Screen(Context& context, const std::string& prefix)
      : context_(context), raw_(prefix.empty()), out_(prefix), err_(prefix) {}

  void take(ssh::Stream stream, std::string_view data) {
    if (raw_) {
      print(stream, data);
    } else {
      print(stream, (stream == ssh::Stream::out ? out_ : err_).take(data));
    }
  }
  void finish() {
    print(ssh::Stream::out, out_.finish());
    print(ssh::Stream::err, err_.finish());
  }

 private:
  void print(ssh::Stream stream, std::string_view text) {
    if (stream == ssh::Stream::out) {
      context_.terminal.out(text);
    } else {
      context_.terminal.err(text);
    }
  }

  Context& context_;
  bool raw_;
  ui::LineAssembler out_;
  ui::LineAssembler err_;
};

ExecResult run_on(Context& context, const config::Server& server, const servers::RunCommand& base,
                  const std::string& prefix) {
  const config::Config& config = context.config();
  servers::RunCommand command = base;
  command.project = config.project_path_on(server);
  command.activate = servers::activation(config, server);
  const auto connection = context.connector().connect(server, context.cancel);
  servers::CommandLog log(config, "run", server.name);
  Screen screen(context, prefix);
  ExecResult ran;
  const auto sink = [&](ssh::Stream stream, std::string_view data) {
    log.write(stream, data);
    if (context.options.json) {
      if (ran.out.size() + ran.err.size() + data.size() > most_json_output) {
        throw Error("too much output",
                    fmt::format("--json holds no more than {} MB of a server's", most_json_output >> 20U),
                    "run it without --json: then the output is passed on as it comes");
      }
      (stream == ssh::Stream::out ? ran.out : ran.err).append(data);
    } else {
      screen.take(stream, data);
    }
  };
  try {
    ran.status = servers::run_command(*connection, command, sink, context.cancel);
  } catch (const Error& error) {
    screen.finish();
    log.give_up(error.message());
    throw;
  }
  screen.finish();
  log.finish(ran.status);
  return ran;
}

nlohmann::json to_json(const std::string& server, const servers::Outcome<ExecResult>& outcome) {
  nlohmann::json entry = {{"server", server}, {"exit_code", nullptr}, {"signal", nullptr},
                          {"stdout", ""},     {"stderr", ""},         {"error", nullptr}};
  if (!outcome.ok()) {
    entry["error"] = outcome.error->message();
    return entry;
  }
  const ExitStatus& status = outcome.value->status;
  if (const auto code = status.code()) {
    entry["exit_code"] = *code;
  }
  if (const auto signal = status.signal()) {
    entry["signal"] = signal_name(*signal);
  }
  entry["stdout"] = outcome.value->out;
  entry["stderr"] = outcome.value->err;
  return entry;
}

int run(Context& context, const Arguments& arguments) {
  if (arguments.command.empty()) {
    throw Error::usage("run", "--cmd is empty", "give the command to run: remote run --cmd 'nvidia-smi'");
  }
  const std::vector<config::Server> servers = context.servers(arguments.servers);
  servers::RunCommand base;
  base.command = arguments.command;
  base.env = arguments.env.collect();
  std::size_t width = 0;
  for (const config::Server& server : servers) {
    width = std::max(width, server.name.size());
  }
  const auto outcomes = servers::fan_out(
      servers, [](const config::Server& server) { return server.name; },
      [&](const config::Server& server, std::size_t index) {
        constexpr ui::Style styles[] = {ui::Style::cyan, ui::Style::green, ui::Style::yellow,
                                        ui::Style::magenta, ui::Style::blue};
        const std::string prefix =
            servers.size() == 1
                ? ""
                : context.terminal.paint_out(styles[index % 5], fmt::format("{:<{}} |", server.name, width)) +
                      " ";
        return run_on(context, server, base, prefix);
      });
  context.show_new_host_keys();
  int failed = 0;
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (context.options.json) {
      all.push_back(to_json(servers[i].name, outcomes[i]));
    }
    if (!outcomes[i].ok()) {
      ++failed;
      context.show(*outcomes[i].error);
    } else if (!outcomes[i].value->status.success()) {
      ++failed;
      if (servers.size() > 1) {
        context.terminal.notice(fmt::format("{}: {}", servers[i].name, outcomes[i].value->status.describe()));
      }
    }
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  }
  if (servers.size() == 1 && outcomes[0].ok()) {
    return outcomes[0].value->status.shell_code();
  }
  if (failed > 0 && servers.size() > 1) {
    context.terminal.notice(fmt::format("failed on {} of {} servers", failed, servers.size()));
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "Run a command on the servers and show its output");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--cmd", arguments->command, "The command, run by a shell in the project's folder")
      ->type_name("C")
      ->required();
  add_server_option(*command, arguments->servers);
  add_env_options(*command, arguments->env);
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
