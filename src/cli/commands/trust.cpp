// `remote trust`: allows what a project wants to do on this machine.

#include "cli/show/trust.hpp"

#include <CLI/App.hpp>

#include "cli/options.hpp"

namespace remote::cli {
namespace {

struct TrustArguments {
  bool yes = false;
  bool folder = false;
  bool forget = false;
};

int run_trust(Context& context, const TrustArguments& arguments) {
  const std::filesystem::path folder = context.folder();
  if (arguments.forget) {
    Project::forget(folder);
    context.terminal.notice("this project is no longer allowed anything");
    return 0;
  }
  std::vector<Demand> demands;
  if (!arguments.folder) {
    demands = context.project().demands();
  } else if (const auto demand = Project::folder_demand(folder)) {
    demands.push_back(*demand);
  }
  if (demands.empty()) {
    context.terminal.notice(arguments.folder ? "only you can change this project; nothing to allow"
                                             : "this project needs nothing that you have not allowed");
    return 0;
  }
  if (arguments.yes) {
    show_demands(context.terminal, demands);
  } else if (!context.ask_trust(demands)) {
    throw Error::usage(
        "nothing was allowed",
        context.terminal.stdin_is_terminal() ? "not confirmed" : "there is no terminal to ask on",
        context.terminal.stdin_is_terminal() ? "" : "add --yes if you want all of it");
  }
  Project::allow(folder, demands);
  context.terminal.notice("allowed");
  return 0;
}

}  // namespace

void add_trust(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_trust);
  command.add_flag("--yes", arguments.yes, "Do not ask");
  command.add_flag("--folder", arguments.folder, "Use the project even though others can change its folder");
  command.add_flag("--forget", arguments.forget, "Take back everything that this project was allowed");
}

}  // namespace remote::cli
