#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/context.hpp"
#include "servers/prepare.hpp"
#include "ssh/rsync_tunnel.hpp"
#include "ui/progress.hpp"

// What setup, rsync, update-packages and prepare share: their options, and running the steps on all servers
// side by side with progress and a summary.

namespace remote::cli {

struct ProvisionOptions {
  std::vector<std::string> servers;
  servers::PrepareSteps steps;
  std::string fan_out = "direct";  // or "peers"
  std::string title;               // of the summary: "prepared"
};

void add_server_option(CLI::App& command, ProvisionOptions& options);
void add_sync_options(CLI::App& command, ProvisionOptions& options);

// rsync's figures for the screen.
ui::Transfer as_transfer(const ssh::RsyncProgress& progress);

// Returns the exit code: 0, or 1 when a server failed.
int run_provision(Context& context, const ProvisionOptions& options);

}  // namespace remote::cli
