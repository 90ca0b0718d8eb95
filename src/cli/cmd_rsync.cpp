#include <memory>

#include "cli/commands.hpp"
#include "cli/provision.hpp"

namespace remote::cli {

void add_rsync(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("rsync", "Send the project to the servers");
  auto options = std::make_shared<ProvisionOptions>();
  options->title = "in step";
  options->steps.sync = true;
  add_server_option(*command, *options);
  add_sync_options(*command, *options);
  command->add_flag("-n,--dry-run", options->steps.sync_options.dry_run,
                    "Show what would go, change nothing");
  command->callback([options, &context] { context.exit_code = run_provision(context, *options); });
}

}  // namespace remote::cli
