#pragma once

#include <vector>

#include "cli/context.hpp"

// To add a subcommand: write src/cli/commands/NAME.cpp with `void add_NAME(CLI::App& app, Context& context)`,
// declare it below, and put it into the table in commands.cpp. add_NAME makes the subcommand, binds its
// options to a struct that a shared_ptr keeps, and sets a callback that runs it and stores the exit code in
// context.exit_code. A command returns its outcome; only cli.cpp prints errors that were thrown and only main
// ends the process.

namespace CLI {
class App;
}

namespace remote::cli {

using AddCommand = void (*)(CLI::App&, Context&);

// Every subcommand, in the order in which --help shows them.
const std::vector<AddCommand>& commands();

void add_init(CLI::App& app, Context& context);
void add_setup(CLI::App& app, Context& context);
void add_rsync(CLI::App& app, Context& context);
void add_update_packages(CLI::App& app, Context& context);
void add_prepare(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_job_run(CLI::App& app, Context& context);
void add_launch(CLI::App& app, Context& context);  // torch-launch, helper-torch-launch and launch
void add_job_list(CLI::App& app, Context& context);
void add_job_tail(CLI::App& app, Context& context);
void add_job_kill(CLI::App& app, Context& context);
void add_job_rsync(CLI::App& app, Context& context);
void add_job_wait(CLI::App& app, Context& context);
void add_authorize(CLI::App& app, Context& context);
void add_job_clean(CLI::App& app, Context& context);
void add_job_pull(CLI::App& app, Context& context);
void add_job_stacks(CLI::App& app, Context& context);
void add_sandbox(CLI::App& app, Context& context);
void add_servers(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_complete(CLI::App& app, Context& context);

}  // namespace remote::cli
