#include "cli/cli.hpp"

#include <exception>
#include <optional>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <remote/error.hpp>

#include "cli/commands/commands.hpp"
#include "cli/logging.hpp"
#include "cli/signals.hpp"
#include "cli/usage_error.hpp"

namespace remote::cli {
namespace {

void add_global_options(CLI::App& app, Context& context) {
  app.add_option("--project", context.options.project, "The project's folder (default: walk up from here)")
      ->type_name("DIR");
  app.add_option("--color", context.options.color, "When to colour the output")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-v,--verbose", context.options.verbose, "Tell what is done, on stderr; -vv tells more");
  app.add_flag("--quiet", context.options.quiet, "No notices, only data and errors");
  app.add_flag("--json", context.options.json, "Print data as one JSON value");
}

void apply_global_options(Context& context) {
  context.terminal.set_quiet(context.options.quiet);
  if (context.options.color == "always") {
    context.terminal.set_color(ui::Color::always);
  } else if (context.options.color == "never") {
    context.terminal.set_color(ui::Color::never);
  }
}

int exit_code_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::failure:
      return 1;
    case ErrorKind::usage:
      return 2;
  }
  return 1;
}

int parse_and_run(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;  // --help and --version
      app.exit(error, text);
      context.terminal.out(text.str());
      return 0;
    }
    if (words.empty()) {
      context.terminal.err(app.help());
    } else {
      context.show(usage_error(app, error));
    }
    return 2;
  }
}

}  // namespace

int run(const std::vector<std::string>& words, Environment environment) {
  Context context(std::move(environment));
  CLI::App app("Turns plain SSH servers into one training machine.", "remote");
  app.set_version_flag("--version", "remote " REMOTE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // the global options may stand behind the subcommand too
  add_global_options(app, context);
  for (const AddCommand add : commands()) {
    add(app, context);
  }
  std::optional<Logging> logging;
  app.parse_complete_callback([&] {
    apply_global_options(context);
    logging.emplace(context.terminal, context.options.verbose);
  });
  try {
    return parse_and_run(app, context, words);
  } catch (const Interrupted&) {
    return 130;
  } catch (const Error& error) {
    context.show(error);
    return exit_code_of(error);
  } catch (const std::exception& error) {
    context.show(Error("internal error", error.what(), "this is a bug of remote: please report it"));
    return 1;
  }
}

int run(int argc, char** argv) {
  Environment environment;
  environment.cancel = cancel_on_signals();
  return run({argv + 1, argv + argc}, std::move(environment));
}

}  // namespace remote::cli
