// `remote authorize`: puts a public key on the servers over whatever login works, and proves that it is
// enough.

#include <map>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "servers/authorize.hpp"
#include "servers/fanout.hpp"
#include "ssh/key_files.hpp"
#include "ssh/target.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

using servers::AuthorizeReport;

struct Arguments {
  std::vector<std::string> servers;
  std::string key;
  bool generate = false;
};

// A key pair: the private half's file and the public half.
struct Chosen {
  fs::path file;
  servers::PublicKey key;
};

fs::path without_pub(fs::path file) {
  if (file.extension() == ".pub") {
    file.replace_extension();
  }
  return file;
}

// The file of the key for a server: --key, else what configs.yaml or ~/.ssh/config name for it, else the
// first of ~/.ssh/id_* that is there.
fs::path key_file_for(Context& context, const Arguments& arguments, const config::Server& server) {
  if (!arguments.key.empty()) {
    return fs::absolute(without_pub(expand_home(arguments.key)));
  }
  const fs::path ssh_folder = home_folder() / ".ssh";
  const ssh::Target target = ssh::resolve(context.config(), server, ssh_folder / "config");
  std::error_code ignored;
  for (const auto& identity : target.identities) {
    if (target.identities_given || fs::exists(identity.value, ignored) ||
        fs::exists(identity.value.string() + ".pub", ignored)) {
      return without_pub(identity.value);
    }
  }
  return ssh_folder / "id_ed25519";
}

// Each server's key. Makes what is missing when --generate says so: once, also when servers share it.
std::vector<Chosen> choose_keys(Context& context, const Arguments& arguments,
                                const std::vector<config::Server>& servers) {
  std::map<fs::path, servers::PublicKey> known;
  std::vector<Chosen> chosen;
  for (const config::Server& server : servers) {
    const fs::path file = key_file_for(context, arguments, server);
    if (!known.contains(file)) {
      std::error_code ignored;
      if (arguments.generate && !fs::exists(file, ignored) && !fs::exists(file.string() + ".pub", ignored)) {
        ssh::generate_key(file, who_am_i());
        context.terminal.notice("made the key " + file.string());
      }
      known.emplace(file, servers::parse_public_key(ssh::public_half_of(file), file.string() + ".pub"));
    }
    chosen.push_back({file, known.at(file)});
  }
  return chosen;
}

// Why the proof failed although the key stands there, as far as that can be told.
Error explained(const Error& error, const AuthorizeReport& report, const fs::path& file) {
  std::string hint = "look at AuthorizedKeysFile and PubkeyAuthentication in the server's sshd_config";
  std::error_code ignored;
  if (report.state == AuthorizeReport::State::restricted) {
    hint = "the key stands in authorized_keys with options before it: see whether they forbid this login";
  } else if (!report.open_folder.empty()) {
    hint = fmt::format(
        "others may write to {} on the server, so sshd does not trust what is in it: "
        "chmod go-w {}",
        report.open_folder, report.open_folder);
  } else if (!fs::exists(file, ignored)) {
    hint = "the private half " + file.string() + " is not here: the login was not tried with it";
  }
  return Error("the key is there, but a login with it alone does not work", error.message(), hint,
               error.kind());
}

AuthorizeReport authorize_one(Context& context, const config::Server& server, const Chosen& chosen) {
  AuthorizeReport report;
  {
    const auto connection = context.connector().connect(server, context.cancel);
    report = servers::authorize(*connection, chosen.key, context.cancel);
  }
  try {
    context.connector().connect_with_key(server, chosen.file, context.cancel);
  } catch (const Error& error) {
    throw explained(error, report, chosen.file);
  }
  return report;
}

std::string state_of(const AuthorizeReport& report) {
  return report.state == AuthorizeReport::State::added ? "added" : "present";
}

// Servers whose configuration does not lead to the key yet.
void advise(Context& context, const std::vector<config::Server>& servers, const std::vector<Chosen>& chosen) {
  std::set<std::string> files;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    Arguments none;
    std::error_code ignored;
    if (key_file_for(context, none, servers[i]) != chosen[i].file && fs::exists(chosen[i].file, ignored)) {
      files.insert(chosen[i].file.string());
    }
  }
  for (const std::string& file : files) {
    context.terminal.notice(
        fmt::format("to log in with it from now on, set `private_key: {}` in configs.yaml", file));
  }
}

int run(Context& context, const Arguments& arguments) {
  const std::vector<config::Server> servers = context.servers(arguments.servers);
  const std::vector<Chosen> chosen = choose_keys(context, arguments, servers);
  const auto outcomes = servers::fan_out(
      servers, [](const config::Server& server) { return server.name; },
      [&](const config::Server& server, std::size_t index) {
        return authorize_one(context, server, chosen[index]);
      });
  context.show_new_host_keys();
  nlohmann::json all = nlohmann::json::array();
  std::size_t failed = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const auto& outcome = outcomes[i];
    nlohmann::json entry = {{"server", servers[i].name},
                            {"ok", outcome.ok()},
                            {"key", chosen[i].file.string()},
                            {"state", nullptr},
                            {"error", nullptr}};
    if (!outcome.ok()) {
      ++failed;
      entry["error"] = outcome.error->message();
      context.show(*outcome.error);
    } else {
      entry["state"] = state_of(*outcome.value);
      if (!context.options.json) {
        context.terminal.out(fmt::format(
            "{}: {}; logged in with it alone\n", servers[i].name,
            outcome.value->state == AuthorizeReport::State::added ? "key added" : "key was there already"));
      }
      if (!outcome.value->open_folder.empty()) {
        context.terminal.warning(
            fmt::format("{}: others may write to {} there; with StrictModes, sshd would "
                        "not read the key (chmod go-w {})",
                        servers[i].name, outcome.value->open_folder, outcome.value->open_folder));
      }
    }
    all.push_back(std::move(entry));
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  }
  if (failed == 0) {
    advise(context, servers, chosen);
  } else if (servers.size() > 1) {
    context.terminal.notice(fmt::format("failed on {} of {} servers", failed, servers.size()));
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_authorize(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("authorize", "Put a public key on the servers, and prove the login with it alone");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--key", arguments->key,
                   "The key (default: the server's private_key or IdentityFile, else ~/.ssh/id_*)")
      ->type_name("FILE.pub");
  command->add_flag("--generate", arguments->generate, "Make the key when there is none");
  add_server_option(*command, arguments->servers);
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
