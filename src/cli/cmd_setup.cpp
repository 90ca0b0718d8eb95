#include <memory>

#include "cli/commands.hpp"
#include "cli/provision.hpp"

namespace remote::cli {

void add_setup(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("setup", "Make the Python environment on the servers");
  auto options = std::make_shared<ProvisionOptions>();
  options->title = "set up";
  options->steps.setup = true;
  add_server_option(*command, *options);
  command->add_flag("--force", options->steps.force, "Make it anew, also where it is done");
  command->callback([options, &context] { context.exit_code = run_provision(context, *options); });
}

}  // namespace remote::cli
