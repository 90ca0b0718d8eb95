#include "sandbox/sandbox.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/commands/commands.hpp"
#include "cli/context.hpp"
#include "sandbox/config.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

struct SandboxArguments {
  sandbox::SandboxOptions up;
  bool purge = false;
};

// Unlike other commands, this one is also for a folder that has no configs.yaml yet.
fs::path sandbox_project(const Context& context) {
  if (context.options.project) {
    fs::path folder = expand_home(*context.options.project);
    if (!fs::is_directory(folder)) {
      throw Error::usage("--project " + *context.options.project, "there is no such folder");
    }
    return folder;
  }
  try {
    return Project::find(fs::current_path());
  } catch (const Error&) {
    return fs::current_path();
  }
}

nlohmann::json to_json(const std::vector<sandbox::SandboxServer>& list) {
  auto array = nlohmann::json::array();
  for (const sandbox::SandboxServer& server : list) {
    array.push_back({{"name", server.name},
                     {"hostname", "127.0.0.1"},
                     {"port", server.port},
                     {"running", server.pid != 0},
                     {"pid", server.pid != 0 ? nlohmann::json(server.pid) : nlohmann::json()},
                     {"home", server.home.string()}});
  }
  return array;
}

void report_config(Context& context, const sandbox::Sandbox& sandbox,
                   const std::vector<sandbox::SandboxServer>& list) {
  const sandbox::SandboxConfigResult result = sandbox::settle_config(sandbox, list);
  switch (result.state) {
    case sandbox::SandboxConfigState::created:
      context.terminal.notice("wrote .remote/configs.yaml");
      break;
    case sandbox::SandboxConfigState::updated:
      context.terminal.notice("updated .remote/configs.yaml");
      break;
    case sandbox::SandboxConfigState::names_all:
      break;
    case sandbox::SandboxConfigState::lacks_some:
      if (result.problem) {
        context.terminal.warning(*result.problem);
      }
      context.terminal.notice(
          ".remote/configs.yaml is yours and does not name all of them. It needs these under its `servers:` "
          "(and,\n"
          "unless conda is wanted on them, `python: {manager: venv, system_site_packages: true}`):");
      context.terminal.err("\n" + sandbox::sandbox_servers_yaml(result.lacking, sandbox::user_name()) + "\n");
      break;
  }
}

void sandbox_up(Context& context, const sandbox::SandboxOptions& options) {
  sandbox::Sandbox sandbox(sandbox_project(context));
  const auto list = sandbox.up(options, context.cancel);
  std::size_t started = 0;
  for (const sandbox::SandboxServer& server : list) {
    started += server.started ? 1 : 0;
    if (server.port_changed) {
      context.terminal.notice(
          fmt::format("{}: its former port was taken, it now has {}", server.name, server.port));
    }
  }
  std::string how;
  if (started == 0) {
    how = " (all were running)";
  } else if (started < list.size()) {
    how = fmt::format(" ({} of them just started)", started);
  }
  context.terminal.notice(counted(list.size(), "practice server") + " up" + how);
  report_config(context, sandbox, list);
  if (context.options.json) {
    context.terminal.out(dump_json(to_json(list)));
  }
}

void sandbox_down(Context& context, bool purge) {
  sandbox::Sandbox sandbox(sandbox_project(context));
  const int ended = sandbox.down();
  context.terminal.notice(counted(ended, "practice server") + " ended");
  if (purge) {
    if (sandbox::remove_config(sandbox)) {
      context.terminal.notice("removed .remote/configs.yaml, which the sandbox had written");
    }
    sandbox.purge();
    context.terminal.notice("removed " + sandbox.folder().string());
  }
}

void sandbox_status(Context& context) {
  const sandbox::Sandbox sandbox(sandbox_project(context));
  const auto list = sandbox.status();
  if (context.options.json) {
    context.terminal.out(dump_json(to_json(list)));
    return;
  }
  if (list.empty()) {
    context.terminal.notice("no sandbox here; `remote sandbox up` makes one");
    return;
  }
  std::string text = fmt::format("{:<10} {:<15} {:<8} {}\n", "SERVER", "ADDRESS", "STATE", "HOME");
  for (const sandbox::SandboxServer& server : list) {
    const std::string state = server.pid != 0 ? "up" : "down";
    text += fmt::format("{:<10} {:<15} {} {}\n", server.name, fmt::format("127.0.0.1:{}", server.port),
                        context.terminal.paint_out(server.pid != 0 ? ui::Style::green : ui::Style::dim,
                                                   fmt::format("{:<8}", state)),
                        server.home.string());
  }
  context.terminal.out(text);
}

}  // namespace

void add_sandbox(CLI::App& app, Context& context) {
  CLI::App* sandbox = app.add_subcommand("sandbox", "Practice servers on this machine: real sshd processes");
  sandbox->require_subcommand(1);
  const auto arguments = std::make_shared<SandboxArguments>();

  CLI::App* up = sandbox->add_subcommand("up", "Start them; those that run already stay as they are");
  up->add_option("--nodes", arguments->up.nodes, "How many (default: those there are, else 2)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  up->add_option("--max-sessions", arguments->up.max_sessions,
                 "Sessions that one connection may have, of those started now (default: 10, as sshd has it)")
      ->check(CLI::Range(0, 10000))
      ->type_name("N");
  up->callback([arguments, &context] { sandbox_up(context, arguments->up); });

  CLI::App* down = sandbox->add_subcommand("down", "End them and everything that was started in them");
  down->add_flag("--purge", arguments->purge, "Remove their homes, keys and ports too");
  down->callback([arguments, &context] { sandbox_down(context, arguments->purge); });

  CLI::App* status = sandbox->add_subcommand("status", "List them");
  status->callback([&context] { sandbox_status(context); });
}

}  // namespace remote::cli
