// Installs a public key on the servers over any login that works, and verifies that a login with it works.

#include "servers/authorize.hpp"

#include <map>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "ssh/key_files.hpp"
#include "ssh/target.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

// A key pair: the private key's file, and the public key.
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

// The key that configs.yaml or ~/.ssh/config selects for a server, or else the first existing one of
// ~/.ssh/id_*.
fs::path configured_key(const config::Config& config, const config::Server& server) {
  const fs::path ssh_folder = home_folder() / ".ssh";
  const ssh::Target target = ssh::resolve(config, server, ssh_folder / "config");
  for (const auto& identity : target.identities) {
    if (target.identities_given || is_there(identity.value) || is_there(identity.value.string() + ".pub")) {
      return without_pub(identity.value);
    }
  }
  return ssh_folder / "id_ed25519";
}

// The key for each server. Generates missing keys if requested, only once for a key that several servers use.
std::vector<Chosen> choose_keys(Core& core, const AuthorizeRequest& request,
                                const std::vector<config::Server>& servers) {
  std::map<fs::path, servers::PublicKey> known;
  std::vector<Chosen> chosen;
  for (const config::Server& server : servers) {
    const fs::path file = request.key.empty() ? configured_key(core.config, server)
                                              : absolute_path(without_pub(expand_home(request.key.string())));
    if (!known.contains(file)) {
      if (request.generate && !is_there(file) && !is_there(file.string() + ".pub")) {
        ssh::generate_key(file, user_at_host());
        core.tell(KeyMade{file.string()});
      }
      known.emplace(file, servers::parse_public_key(ssh::public_half_of(file), file.string() + ".pub"));
    }
    chosen.push_back({file, known.at(file)});
  }
  return chosen;
}

// The likely reason why the login still fails although the key is installed.
Error explained(const Error& error, const wire::AuthorizeReply& report, const fs::path& file) {
  std::string hint = "check AuthorizedKeysFile and PubkeyAuthentication in the server's sshd_config";
  if (report.state == wire::KeyState::restricted) {
    hint = "the key is in authorized_keys with options before it: check whether they forbid this login";
  } else if (!report.open_folder.empty()) {
    hint = fmt::format(
        "others can write to {0} on the server, so sshd does not trust its content: chmod go-w {0}",
        report.open_folder);
  } else if (!is_there(file)) {
    hint = "the private half " + file.string() + " is not here, so the login was not tested with it";
  }
  return {"the key is there, but a login with it alone does not work", error.message(), hint, error.kind()};
}

wire::AuthorizeReply authorize_one(Core& core, const config::Server& server, const Chosen& chosen) {
  wire::AuthorizeReply report;
  {
    const auto connection = core.connector().connect(server, core.cancel());
    report = servers::authorize(*connection, chosen.key, core.cancel());
  }
  try {
    core.connector().connect_with_key(server, chosen.file, core.cancel());
  } catch (const Error& error) {
    throw explained(error, report, chosen.file);
  }
  return report;
}

std::vector<AuthorizeResult> authorize(Core& core, const AuthorizeRequest& request) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  const std::vector<Chosen> chosen = choose_keys(core, request, servers);
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        return authorize_one(core, server, chosen[index]);
      });
  std::vector<AuthorizeResult> results;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    AuthorizeResult result;
    result.server = servers[i].name;
    result.key = chosen[i].file;
    result.configured =
        configured_key(core.config, servers[i]) == chosen[i].file || !is_there(chosen[i].file);
    if (outcomes[i].ok()) {
      result.added = outcomes[i].value->state == wire::KeyState::added;
      result.open_folder = outcomes[i].value->open_folder;
    }
    result.error = outcomes[i].error;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

}  // namespace remote::project

namespace remote {

std::vector<AuthorizeResult> Project::authorize(const AuthorizeRequest& request,
                                                const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::authorize(core, request); });
}

}  // namespace remote
