// `remote shell SERVER`: opens the login shell there, in the project's folder and environment.

#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/keyboard.hpp"
#include "cli/line_meaning.hpp"
#include "cli/options.hpp"
#include "cli/other_tools.hpp"
#include "cli/word_list.hpp"

namespace remote::cli {
namespace {

struct ShellArguments {
  std::string server;
  EnvOptions env;
  std::optional<std::string> allocate;  // options for srun
};

// The named server, or the only one.
std::string chosen_server(Context& context, const std::string& named) {
  const std::vector<std::string> names = context.project().server_names();
  if (named.find('@') != std::string::npos && !server_in(named, names).empty()) {  // ssh's syntax
    throw Error::usage(
        "remote shell",
        fmt::format("'{}' has a user, which is the server's `username` in configs.yaml",
                    visible_line(named, 60)),
        hint_for_other_tool({"ssh", named}, names, words_before(context.typed_words, "shell")));
  }
  if (!named.empty()) {
    return named;
  }
  if (names.size() == 1) {
    return names.front();
  }
  throw Error::usage("remote shell", "it needs a server: " + join(names, ", "),
                     names.empty() ? "" : "for example: remote shell " + names.front());
}

int run_shell(Context& context, const ShellArguments& arguments) {
  if (context.options.json) {
    throw Error::usage("remote shell", "--json works only with commands that return data",
                       "leave --json out");
  }
  const std::string server = chosen_server(context, arguments.server);
  if (!context.terminal.stdin_is_terminal() || !context.terminal.stdout_is_terminal()) {
    throw Error::usage("remote shell", "stdin and stdout must be a terminal",
                       "to run one command, write: remote run --cmd C --server S");
  }
  ShellRequest request;
  request.server = server;
  request.env = arguments.env.collect();
  if (arguments.allocate) {
    request.env.emplace_back("REMOTE_ALLOCATE", *arguments.allocate);
  }
  context.terminal.set_cancel(context.cancel);  // a terminal that blocks must not delay the end
  request.on_output = [&](std::string_view data) { context.terminal.out(data); };
  ServerRun result;
  {
    Keyboard keyboard(context);
    request.terminal = keyboard.side();
    result = context.project().shell(request);
    if (!result.error) {
      keyboard.finish();
    }
  }
  if (result.error) {
    context.show(*result.error);
    return 1;
  }
  return result.status->shell_code();
}

}  // namespace

void add_shell(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_shell);
  context.completers[command.add_option("server", arguments.server, "Server (default: the only one)")
                         ->type_name("SERVER")] = NameKind::servers;
  arguments.env.add(command);
  command
      .add_option("--allocate", arguments.allocate,
                  "Slurm: open the shell on a node, with these options of srun ('' for none)")
      ->type_name("OPTIONS");
}

}  // namespace remote::cli
