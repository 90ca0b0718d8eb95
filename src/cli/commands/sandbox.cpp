#include "sandbox/sandbox.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "config/trust.hpp"
#include "sandbox/config.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

struct UpArguments {
  sandbox::SandboxOptions options;
  bool sample = false;
};

struct DownArguments {
  bool purge = false;
};

// Unlike other commands, this one also works in a folder that has no configs.yaml yet.
fs::path sandbox_project(const Context& context) {
  if (context.options.project) {
    fs::path folder = expand_home(*context.options.project);
    if (!is_folder(folder)) {
      throw Error::usage("--project " + *context.options.project, "there is no such folder",
                         "make it first, or go into the folder and leave --project out");
    }
    return folder;
  }
  try {
    return Project::find(current_folder());
  } catch (const Error&) {
    return current_folder();
  }
}

nlohmann::json servers_json(const std::vector<sandbox::SandboxServer>& list) {
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
                   const std::vector<sandbox::SandboxServer>& list, bool sample) {
  const sandbox::SandboxConfigResult result = sandbox::settle_config(sandbox, list, sample);
  using State = sandbox::SandboxConfigState;
  if (result.state == State::created || result.state == State::updated) {
    context.terminal.notice(
        fmt::format("{} .remote/configs.yaml", result.state == State::created ? "wrote" : "updated"));
  } else if (result.state == State::lacks_some) {
    if (result.problem) {
      context.terminal.warning(*result.problem);
    }
    context.terminal.notice(
        ".remote/configs.yaml is yours and does not name all of them. It needs these under its `servers:` "
        "(and,\n"
        "unless conda is wanted on them, `python: {manager: venv, system_site_packages: true}`):");
    context.terminal.err("\n" + sandbox::sandbox_servers_yaml(result.lacking, local_user()) + "\n");
  }
}

void report_sample(Context& context, const sandbox::Sandbox& sandbox) {
  const bool made = sandbox::write_sample(sandbox) == sandbox::Sample::made;
  context.terminal.notice(made ? "wrote train.py, a training that needs only Python 3"
                               : "kept train.py: it exists already");
  const bool usual = context.project().launch_defaults().command.has_value();
  context.terminal.notice(std::string("to train on all of them: remote torch-launch") +
                          (usual ? "" : " --rsync --follow --nproc-per-node 2 --cmd 'python3 train.py'"));
}

int sandbox_up(Context& context, const UpArguments& arguments) {
  const fs::path project = sandbox_project(context);
  config::check_folder(project);
  sandbox::Sandbox sandbox(project);
  sandbox::SandboxOptions options = arguments.options;
  options.ports = sandbox::ports_in_config(sandbox);
  const auto list = sandbox.up(options, context.cancel);
  std::size_t started = 0;
  for (const sandbox::SandboxServer& server : list) {
    started += server.started ? 1 : 0;
    if (server.port_changed) {
      context.terminal.notice(
          fmt::format("{}: its former port was taken, it now has {}", server.name, server.port));
    }
    if (!server.moved_aside.empty()) {
      context.terminal.warning(fmt::format("{}: its home folder was not made on this machine; moved it to {}",
                                           server.name, server.moved_aside.string()));
    }
  }
  std::string how;
  if (started == 0) {
    how = " (all were running)";
  } else if (started < list.size()) {
    how = fmt::format(" ({} of them just started)", started);
  }
  context.terminal.notice(counted(list.size(), "practice server") + " up" + how);
  report_config(context, sandbox, list, arguments.sample);
  if (arguments.sample) {
    report_sample(context, sandbox);
  }
  if (context.options.json) {
    context.print(servers_json(list));
  }
  return 0;
}

int sandbox_down(Context& context, const DownArguments& arguments) {
  sandbox::Sandbox sandbox(sandbox_project(context));
  const int ended = sandbox.down();
  context.terminal.notice(counted(ended, "practice server") + " ended");
  if (arguments.purge) {
    const sandbox::UndoneConfig undone = sandbox::undo_config(sandbox);
    if (undone == sandbox::UndoneConfig::removed) {
      context.terminal.notice("removed .remote/configs.yaml, which the sandbox had written");
    } else if (undone == sandbox::UndoneConfig::restored) {
      context.terminal.notice("removed the practice servers from .remote/configs.yaml");
    }
    sandbox.purge();
    context.terminal.notice("removed " + sandbox.folder().string());
  }
  return 0;
}

void sandbox_status(Context& context) {
  const sandbox::Sandbox sandbox(sandbox_project(context));
  const auto list = sandbox.status();
  if (context.options.json) {
    context.print(servers_json(list));
    return;
  }
  if (list.empty()) {
    context.terminal.notice("no sandbox here; `remote sandbox up` makes one");
    return;
  }
  ui::Table table({"SERVER", "ADDRESS", "STATE", "HOME"});
  for (const sandbox::SandboxServer& server : list) {
    const bool up = server.pid != 0;
    table.add({server.name, fmt::format("127.0.0.1:{}", server.port),
               ui::Cell(up ? "up" : "down", up ? ui::Style::green : ui::Style::dim), server.home.string()});
  }
  context.terminal.out(table.text(context.terminal));
}

}  // namespace

void add_sandbox(CLI::App& sandbox, Context& context) {
  sandbox.require_subcommand(1);

  CLI::App& up = *sandbox.add_subcommand("up", "Start the practice servers that are not running");
  auto& up_arguments = arguments_of(up, context, sandbox_up);
  add_number_option(up, "--nodes", up_arguments.options.nodes,
                    "Number of servers (default: as before, else 2)", "N", 1, 1000);
  add_number_option(up, "--max-sessions", up_arguments.options.max_sessions,
                    "Sessions for each connection (default: 10, as for sshd)", "N", 0, 10000);

  up.add_flag("--sample", up_arguments.sample,
              "Also write train.py, a small training for `remote torch-launch`");

  CLI::App& down = *sandbox.add_subcommand("down", "Stop them and everything started in them");
  auto& arguments = arguments_of(down, context, sandbox_down);
  down.add_flag("--purge", arguments.purge, "Also remove their homes, keys and ports");

  CLI::App* status = sandbox.add_subcommand("status", "List them");
  status->callback([&context] {
    if (!context.only_parses) {
      sandbox_status(context);
    }
  });
}

}  // namespace remote::cli
