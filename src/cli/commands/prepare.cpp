// `remote prepare` and its three steps, `setup`, `rsync` and `update-packages`.

#include <CLI/App.hpp>

#include "cli/options.hpp"
#include "cli/show/events.hpp"

namespace remote::cli {
namespace {

struct PrepareArguments {
  PrepareRequest request;
  std::string fan_out = "direct";  // or "peers"
  std::string title;               // what a server is afterwards: "prepared"
  bool show_output = false;
  bool yes = false;  // send a large project without a question
};

int run_prepare(Context& context, const PrepareArguments& arguments) {
  PrepareRequest request = arguments.request;
  request.through_peers = arguments.fan_out == "peers";
  if (arguments.show_output) {
    context.terminal.set_logging();
  }
  const std::vector<PrepareResult> results =
      prepare_on_screen(context, request, arguments.show_output, arguments.yes);
  return show_prepared(context, results, request, arguments.title);
}

void add_sync_options(CLI::App& command, PrepareArguments& arguments) {
  PrepareRequest& request = arguments.request;
  command.add_flag("--delete", request.remove,
                   "Remove from the servers what this machine sent and what is gone here now (nothing that "
                   "jobs wrote, nothing excluded)");
  command.add_flag("--overwrite", request.overwrite, "Also send files that are newer on the server");
  add_number_option(command, "--bwlimit", request.kilobytes_per_second,
                    "Send no more than this to each server", "KB/S", 0, 1000000000);
  command
      .add_option(
          "--fan-out", arguments.fan_out,
          "Who sends to whom: this machine to every server (direct), or to one, and the servers to each "
          "other (peers: for large projects and many servers)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"direct", "peers"}));
  command.add_flag("--yes", arguments.yes, "Send a large project without a question");
  command.add_flag("--verify", request.verify, "Compare all contents afterwards and name what differs");
}

// The options that the command's steps take.
void add(CLI::App& app, Context& context, const PrepareArguments& usual, const std::string& name,
         const std::string& help, const std::string& force_help) {
  const auto [command, arguments] = add_command(app, context, name, help, run_prepare, usual);
  add_server_option(command, context, arguments.request.servers);
  if (usual.request.sync) {
    add_sync_options(command, arguments);
  }
  if (usual.request.sync && !usual.request.setup) {
    command.add_flag("-n,--dry-run", arguments.request.dry_run, "Show what would go, change nothing");
  }
  command.add_flag("--show-output", arguments.show_output, "Show all that pip, conda and rsync print");
  if (!force_help.empty()) {
    command.add_flag("--force", arguments.request.force, force_help);
  }
}

}  // namespace

void add_prepare(CLI::App& app, Context& context) {
  add(app, context, {{.sync = false, .packages = false}, "direct", "set up"}, "setup",
      "Make the Python environment on the servers", "Make it anew, also where it is done");
  add(app, context, {{.setup = false, .packages = false}, "direct", "synced"}, "rsync",
      "Send the project to the servers", "");
  add(app, context, {{.setup = false, .sync = false}, "direct", "up to date"}, "update-packages",
      "Install what requirements.txt, Pipfile or pyproject.toml ask for", "Install although nothing changed");
  add(app, context, {{}, "direct", "prepared"}, "prepare",
      "Setup, rsync and update-packages on all servers side by side",
      "Set up and install although it is done");
}

}  // namespace remote::cli
