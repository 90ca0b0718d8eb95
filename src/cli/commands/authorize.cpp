// `remote authorize`: installs a public key on the servers over any login that works, and verifies that a
// login with it works.

#include <optional>
#include <set>
#include <variant>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"

namespace remote::cli {
namespace {

// Shows a server with a working key.
void show_result(Context& context, const AuthorizeResult& result) {
  if (!context.options.json) {
    context.terminal.out(fmt::format("{}: {}; logged in with it alone\n", result.server,
                                     result.added ? "key added" : "key was there already"));
  }
  if (!result.open_folder.empty()) {
    context.terminal.warning(fmt::format(
        "{0}: others may write to {1} there; with StrictModes, sshd would not read the key (chmod go-w {1})",
        result.server, result.open_folder));
  }
}

nlohmann::json authorize_json(const AuthorizeResult& result) {
  nlohmann::json entry = {{"server", result.server},
                          {"ok", !result.error},
                          {"key", result.key.string()},
                          {"state", or_null(result.error   ? ""
                                            : result.added ? "added"
                                                           : "present")}};
  put_error(entry, result.error);
  return entry;
}

// Removes the advice to run `remote authorize` from its own errors.
std::optional<Error> without_advice(const AuthorizeResult& result) {
  if (!result.error || result.error->remedy() != Remedy::authorize_key) {
    return result.error;
  }
  const Error& error = *result.error;
  return Error(error.what_failed(), error.reason(),
               fmt::format("correct `username`, or have the server's administrator add {}.pub to "
                           "~/.ssh/authorized_keys there",
                           result.key.string()),
               error.kind())
      .because(error.cause())
      .on(error.server());
}

int run_authorize(Context& context, const AuthorizeRequest& request) {
  context.on_event = [&context](const Event& event) {
    const auto* problem = std::get_if<LoginProblem>(&event);
    if (problem == nullptr || problem->error.remedy() != Remedy::authorize_key) {
      context.show(event);
    }
  };
  std::vector<AuthorizeResult> results = context.project().authorize(request);
  for (AuthorizeResult& result : results) {
    result.error = without_advice(result);
  }
  nlohmann::json all = nlohmann::json::array();
  std::set<std::string> not_configured;
  for (const AuthorizeResult& result : results) {
    if (!result.error) {
      show_result(context, result);
    }
    all.push_back(authorize_json(result));
    if (!result.configured) {
      not_configured.insert(result.key.string());
    }
  }
  const std::vector<Error> errors = errors_of(results);
  context.show(errors);
  if (context.options.json) {
    context.print(all);
  }
  if (!errors.empty()) {
    if (results.size() > 1) {
      context.terminal.notice(fmt::format("failed on {} of {} servers", errors.size(), results.size()));
    }
    return 1;
  }
  for (const std::string& file : not_configured) {
    context.terminal.notice(
        fmt::format("to log in with it from now on, set `private_key: {}` in configs.yaml", file));
  }
  return 0;
}

}  // namespace

void add_authorize(CLI::App& command, Context& context) {
  auto& request = arguments_of(command, context, run_authorize);
  command
      .add_option("--key", request.key,
                  "Key to install (default: the server's private_key or IdentityFile, else ~/.ssh/id_*)")
      ->type_name("FILE.pub");
  command.add_flag("--generate", request.generate, "Create the key if there is none");
  add_server_option(command, context, request.servers);
}

}  // namespace remote::cli
