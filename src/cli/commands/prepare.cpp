// `remote prepare` and its three steps, `setup`, `rsync` and `update-packages`.

#include "cli/show/prepare.hpp"

#include <CLI/App.hpp>

#include "cli/options.hpp"

namespace remote::cli {
namespace {

struct PrepareArguments {
  PrepareRequest request;
  std::string fan_out = "direct";  // or "peers"
  std::string title;               // the state of a server afterward: "prepared"
  int kilobytes_per_second = 0;
  bool show_output = false;
  bool yes = false;  // send a large project without asking
};

int run_prepare(Context& context, const PrepareArguments& arguments) {
  PrepareRequest request = arguments.request;
  request.through_peers = arguments.fan_out == "peers";
  request.bytes_per_second = static_cast<std::uint64_t>(arguments.kilobytes_per_second) * 1024;
  if (arguments.show_output) {
    context.terminal.set_logging();
  }
  context.when_interrupted =
      request.dry_run ? "interrupted: nothing was changed"
      : request.setup || request.packages
          ? "interrupted: installers that run on the servers are ended; the same command again continues"
          : "interrupted: files that have arrived stay on the servers; the same command again sends the rest";
  const std::vector<PrepareResult> results =
      prepare_on_screen(context, request, arguments.show_output, arguments.yes);
  return show_prepared(context, results, request, arguments.title);
}

void add_sync_options(CLI::App& command, PrepareArguments& arguments) {
  PrepareRequest& request = arguments.request;
  command.add_flag("--delete", request.remove, "Remove files there that this machine sent and no longer has");
  command.add_flag("--overwrite", request.overwrite, "Replace files that are newer on the server");
  add_number_option(command, "--bwlimit", arguments.kilobytes_per_second, "Bandwidth limit for each server",
                    "KB/S", 0, 1000000000);
  command
      .add_option(
          "--fan-out", arguments.fan_out,
          "direct: this machine sends to every server; peers: the servers send to each other (default: "
          "direct)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"direct", "peers"}));
  command.add_flag("--yes", arguments.yes, "Do not ask before sending a large project");
  command.add_flag("--verify", request.verify, "Compare all files afterwards and list differences");
}

// Adds the options for the steps of this command.
void add(CLI::App& command, Context& context, const PrepareArguments& usual, const std::string& force_help) {
  auto& arguments = arguments_of(command, context, run_prepare, usual);
  add_server_option(command, context, arguments.request.servers);
  if (usual.request.sync) {
    add_sync_options(command, arguments);
  }
  if (usual.request.sync && !usual.request.setup) {
    command.add_flag("-n,--dry-run", arguments.request.dry_run, "Show what would be sent, change nothing");
  }
  command.add_flag("--show-output", arguments.show_output, "Show the output of pip, conda and rsync");
  if (!force_help.empty()) {
    command.add_flag("--force", arguments.request.force, force_help);
  }
}

}  // namespace

void add_setup(CLI::App& command, Context& context) {
  add(command, context, {{.sync = false, .packages = false}, "direct", "set up"},
      "Create it again, even if it is there");
}
void add_rsync(CLI::App& command, Context& context) {
  add(command, context, {{.setup = false, .packages = false}, "direct", "synced"}, "");
}
void add_update_packages(CLI::App& command, Context& context) {
  add(command, context, {{.setup = false, .sync = false}, "direct", "up to date"},
      "Install even if nothing changed");
}
void add_prepare(CLI::App& command, Context& context) {
  add(command, context, {{}, "direct", "prepared"}, "Set up and install again, even if it is done");
}

}  // namespace remote::cli
