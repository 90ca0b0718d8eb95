// `remote check`: whether the servers are fit for a run, and what would mend what is not.

#include "cli/show/check.hpp"

#include <CLI/App.hpp>

#include "base/json.hpp"
#include "cli/options.hpp"

namespace remote::cli {
namespace {

int run(Context& context, const CheckRequest& request) {
  const CheckReport report = context.project().check(request);
  if (context.options.json) {
    context.print(to_json(report));
  } else {
    context.terminal.out(check_table(report, context.terminal));
  }
  return report.ok() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto [command, request] = add_command(
      app, context, "check", "Say whether the servers are fit for a run, and what mends them", run);
  add_server_option(command, context, request.servers);
}

}  // namespace remote::cli
