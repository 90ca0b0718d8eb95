// `remote login` and `remote logout`: OpenSSH masters that all commands use.

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"

namespace remote::cli {
namespace {

struct LoginArguments {
  LoginRequest request;
  std::string open_for;
};

int run_login(Context& context, const LoginArguments& arguments) {
  LoginRequest request = arguments.request;
  if (!arguments.open_for.empty()) {
    const auto span = parse_span(arguments.open_for);
    if (!span || span->count() < 1) {
      throw Error::usage("--for '" + visible_line(arguments.open_for) + "' is not a time", "",
                         "give 30m, 8h or 2d");
    }
    request.open_for = *span;
  }
  request.on_terminal = context.terminal.stdin_is_terminal() && !context.options.json;
  request.on_questions = [&](const std::string& name) { context.terminal.notice(name + ":"); };
  const std::vector<LoginResult> results = context.project().login(request);
  auto json = nlohmann::json::array();
  for (const LoginResult& result : results) {
    nlohmann::json entry = {{"server", result.server}, {"was_open", result.was_open}, {"until", nullptr}};
    if (!result.error) {
      entry["until"] = result.until.time_since_epoch().count();
      if (!context.options.json) {
        context.terminal.out(fmt::format("{}: {}open until {}\n", result.server,
                                         result.was_open ? "already " : "", format_local_time(result.until)));
      }
    }
    put_error(entry, result.error);
    json.push_back(std::move(entry));
  }
  const std::vector<Error> errors = errors_of(results);
  context.show(errors);
  const std::size_t failed = errors.size();
  if (!arguments.open_for.empty() &&
      std::ranges::any_of(results, [](const LoginResult& result) { return result.was_open; })) {
    context.terminal.notice(
        "--for has no effect on connections that are already open; `remote logout` closes them");
  }
  if (context.options.json) {
    context.print(json);
  } else if (failed < results.size()) {
    context.terminal.notice("each command over a login extends it; `remote logout` closes it");
  }
  if (failed > 0 && results.size() > 1) {
    context.terminal.notice(fmt::format("failed on {} of {} servers", failed, results.size()));
  }
  return failed > 0 ? 1 : 0;
}

int run_logout(Context& context, const std::vector<std::string>& servers) {
  const std::vector<std::string> closed = context.project().logout(servers);
  if (context.options.json) {
    context.print(nlohmann::json(closed));
  } else {
    context.terminal.out(closed.empty() ? "no login was open\n" : "closed: " + join(closed, ", ") + "\n");
  }
  return 0;
}

}  // namespace

void add_login(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_login);
  command
      .add_option("--for", arguments.open_for,
                  "Time to stay open after the last command: 30m, 8h, 2d (default: 8h)")
      ->type_name("TIME");
  add_server_option(command, context, arguments.request.servers);
}

void add_logout(CLI::App& command, Context& context) {
  auto& servers = arguments_of(command, context, run_logout);
  add_server_option(command, context, servers);
}

}  // namespace remote::cli
