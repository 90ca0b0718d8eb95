#include <memory>

#include "cli/commands.hpp"
#include "cli/provision.hpp"

namespace remote::cli {

void add_prepare(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("prepare", "Setup, rsync and update-packages on all servers side by side");
  auto options = std::make_shared<ProvisionOptions>();
  options->title = "prepared";
  options->steps.setup = options->steps.sync = options->steps.packages = true;
  add_server_option(*command, *options);
  add_sync_options(*command, *options);
  command->add_flag("--force", options->steps.force, "Set up and install although it is done");
  command->callback([options, &context] { context.exit_code = run_provision(context, *options); });
}

}  // namespace remote::cli
