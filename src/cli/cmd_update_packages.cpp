#include <memory>

#include "cli/commands.hpp"
#include "cli/provision.hpp"

namespace remote::cli {

void add_update_packages(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("update-packages",
                                     "Install what requirements.txt, Pipfile or pyproject.toml ask for");
  auto options = std::make_shared<ProvisionOptions>();
  options->title = "up to date";
  options->steps.packages = true;
  add_server_option(*command, *options);
  command->add_flag("--force", options->steps.force, "Install although nothing changed");
  command->callback([options, &context] { context.exit_code = run_provision(context, *options); });
}

}  // namespace remote::cli
