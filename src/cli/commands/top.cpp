// `remote top`: a live screen of all servers and their jobs.

#include "cli/show/top.hpp"

#include <CLI/App.hpp>

#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/top_screen.hpp"

namespace remote::cli {
namespace {

struct TopArguments {
  std::vector<std::string> servers;
  int interval = 2;
  bool once = false;
};

int show_once(Context& context, const TopArguments& arguments) {
  std::vector<ServerSample> samples(context.project().server_names(arguments.servers).size());
  context.project().watch(
      {.servers = arguments.servers,
       .once = true,
       .on_sample = [&](std::size_t index, const ServerSample& sample) { samples[index] = sample; }});
  if (context.options.json) {
    context.print(top_json(samples));
  } else {
    TopView view;
    if (context.terminal.stdout_is_terminal()) {
      view.width = context.terminal.columns();
    }
    std::string text;
    for (const TopLine& line : top_lines(context, samples, view)) {
      text += line.text + "\n";
    }
    context.terminal.out(text);
  }
  const std::vector<Error> errors = errors_of(samples);
  context.show(errors);
  return errors.empty() ? 0 : 1;
}

int run_top(Context& context, const TopArguments& arguments) {
  // A pipe or a file gets a single sample, because a live screen is useless there.
  if (arguments.once || context.options.json || !context.terminal.stdout_is_terminal()) {
    return show_once(context, arguments);
  }
  context.when_interrupted.reset();
  return show_top_screen(context, {arguments.servers, std::chrono::seconds(arguments.interval)});
}

}  // namespace

void add_top(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_top);
  add_server_option(command, context, arguments.servers);
  add_number_option(command, "--interval", arguments.interval, "Seconds between refreshes (default: 2)",
                    "SECONDS", 1, 3600);
  command.add_flag("--once", arguments.once,
                   "Print once and exit (default with --json or without a terminal)");
}

}  // namespace remote::cli
