#include "ssh/connector.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "ssh/auth.hpp"
#include "ssh/host_keys.hpp"
#include "ssh/jump.hpp"
#include "ssh/libssh.hpp"
#include "ssh/masters.hpp"
#include "ssh/path.hpp"
#include "ssh/secrets.hpp"
#include "ssh/session.hpp"
#include "ssh/target.hpp"
#include "ssh/tcp.hpp"

namespace remote::ssh {
namespace {

// The server closed the connection before the login, because it is busy (MaxStartups), so another attempt may
// succeed.
class Dropped : public Error {
 public:
  using Error::Error;
};

// Exchanges versions and keys over a connected socket. The returned session is non-blocking and not yet
// authenticated, and its server key is not yet checked. Throws Dropped or Unreachable.
SessionPtr shake_hands(UniqueFd fd, const Target& target, const std::string& host_key_algorithms,
                       const Patience& patience) {
  SessionPtr session(ssh_new());
  if (!session) {
    throw Error("cannot connect", "libssh has no memory for a session",
                "stop programs that use much memory on this machine");
  }
  const auto set = [&](ssh_options_e option, const void* value) {
    if (ssh_options_set(session.get(), option, value) != SSH_OK) {
      throw Error("cannot connect", fmt::format("libssh refuses its option {}", static_cast<int>(option)))
          .mended_by(Remedy::tell_more);
    }
  };
  const bool no = false;
  const int yes = 1;
  set(SSH_OPTIONS_PROCESS_CONFIG, &no);  // ssh_config.cpp reads ~/.ssh/config
  // libssh rejects some names, such as those with an underscore, and parses "a@b" as user and host. The
  // connection is already open, so any name works, except for Kerberos.
  if (target.host.value.find('@') != std::string::npos ||
      ssh_options_set(session.get(), SSH_OPTIONS_HOST, target.host.value.c_str()) != SSH_OK) {
    set(SSH_OPTIONS_HOST, "server");
  }
  // libssh also rejects user names with a backslash, as in a Windows domain, so auth.cpp passes the name with
  // each request.
  ssh_options_set(session.get(), SSH_OPTIONS_USER, target.user.value.c_str());
  set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null");  // host_keys.cpp checks the key
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  set(SSH_OPTIONS_NODELAY, &yes);
  if (target.compression.value) {
    // Delayed until the user is authenticated; not used if the server refuses it.
    set(SSH_OPTIONS_COMPRESSION, "zlib@openssh.com,none");
  }
  if (!host_key_algorithms.empty()) {
    set(SSH_OPTIONS_HOSTKEYS, host_key_algorithms.c_str());
  }
  const int socket = fd.get();
  set(SSH_OPTIONS_FD, &socket);
  ssh_set_blocking(session.get(), 0);
  fd.release();  // libssh closes it from now on
  const std::string where = host_and_port(target.host.value, target.port.value);
  for (;;) {
    const int rc = ssh_connect(session.get());
    if (rc == SSH_OK) {
      break;
    }
    if (rc == SSH_AGAIN) {
      if (wait_for_session(session.get(), patience)) {
        continue;
      }
      if (const char* version = ssh_get_serverbanner(session.get()); patience.over() && version != nullptr) {
        throw Unreachable(
            Error("cannot connect",
                  fmt::format("{} answered '{}', and then no key exchange came within {}", where,
                              visible_line(version, 100), patience.text()),
                  fmt::format("{}; connect_timeout in configs.yaml allows more time", path_hint))
                .because(Cause::timeout));
      }
      if (patience.over()) {
        throw Unreachable(
            Error("cannot connect",
                  fmt::format("{} accepted the connection, but no SSH server answered within {}", where,
                              patience.text()),
                  "is it an SSH port? connect_timeout in configs.yaml allows more time")
                .because(Cause::timeout));
      }
    }
    const char* banner = ssh_get_serverbanner(session.get());
    const std::string_view said = banner != nullptr ? banner : "";
    if (!said.empty() && !said.starts_with("SSH-2.") && !said.starts_with("SSH-1.99")) {
      throw Unreachable("cannot connect", fmt::format("{} does not speak SSH 2: it says '{}'", where, said),
                        "is it an SSH port? `port` in configs.yaml sets another");
    }
    const std::string reason = last_error(session.get(), "the connection was closed");
    if (reason.find("too large banner") != std::string::npos) {
      throw Unreachable("cannot connect", fmt::format("{} does not speak SSH", where),
                        "is it an SSH port? `port` in configs.yaml sets another");
    }
    // If the connection closes before the server's version line, only the server's load can be the reason. If
    // the server speaks another protocol, libssh reports it.
    if (banner == nullptr ||
        std::string_view(ssh_get_error(session.get())).find("Socket error") != std::string_view::npos) {
      throw Dropped("cannot connect", fmt::format("{} closed the connection before login: {}", where, reason),
                    "the server may be busy (MaxStartups in its sshd_config), or refuse this address for a "
                    "while after failed logins (PerSourcePenalties)");
    }
    if (reason.find("no match for method") != std::string::npos) {
      throw Unreachable("cannot connect",
                        fmt::format("{} and libssh have no algorithm in common: {}", where, reason),
                        "set `connection: openssh` in configs.yaml: OpenSSH supports more algorithms");
    }
    throw Unreachable("cannot connect", fmt::format("{}: {}", where, reason), "`ssh -v` shows more details");
  }
  // libssh makes the socket blocking again once it is connected. A large write would then block everything.
  ::fcntl(ssh_get_fd(session.get()), F_SETFL, O_NONBLOCK);
  return session;
}

// Calls `step`. Its errors get this cause, unless they already have one.
auto because(Cause cause, const auto& step) {
  try {
    return step();
  } catch (const Unreachable&) {
    throw;
  } catch (const NeedsOpenssh& error) {
    throw NeedsOpenssh(error.because(cause));
  } catch (const Error& error) {
    throw error.because(cause);
  }
}

class LibsshConnector final : public Connector {
 public:
  LibsshConnector(config::Config config, ConnectorOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        secrets_(options_.ask, options_.on_login_problem, config_.project),
        masters_(options_.masters, options_.user_config) {
    initialise_libssh();
  }

  std::unique_ptr<Connection> connect(const config::Server& server, const Cancel& cancel,
                                      ConnectLimit limit) override {
    Target target = target_of(server);
    if (limit) {
      const auto hurry = [&](Target& one) {
        one.connect_timeout_s.value = std::min(one.connect_timeout_s.value, static_cast<int>(limit->count()));
      };
      hurry(target);
      std::ranges::for_each(target.jumps, hurry);
    }
    auto connection = connect_to(target, is_practice(server), cancel, limit);
    connection->set_answer_time(
        std::max(connection->answer_time(),
                 std::chrono::milliseconds(std::chrono::seconds(target.connect_timeout_s.value))));
    connection->set_agent_folders(
        {server.agent_folder.value_or(config_.agent_folder.value_or("")),
         config_.project_path_on(server) + "/" + config_.remote_jobs_folder_name + "/.bin"});
    return connection;
  }

  std::unique_ptr<Connection> connect_with_key(const config::Server& server, const std::filesystem::path& key,
                                               const Cancel& cancel) override {
    Target target = target_of(server);
    target.identities = {{key, "option"}};
    target.identities_given = true;
    target.only_first_identity = true;
    return connect_patiently(target, cancel);
  }

 private:
  std::unique_ptr<Connection> connect_to(const Target& target, bool practice, const Cancel& cancel,
                                         ConnectLimit limit) {
    bool full = false;
    try {
      if (target.connect_by.value != config::ConnectBy::libssh) {
        if (auto connection = over_master(target, cancel, limit, full)) {
          return connection;
        }
      }
      try {
        return connect_patiently(target, cancel);
      } catch (const NeedsOpenssh& error) {
        if (target.connect_by.value != config::ConnectBy::automatic || !find_program("ssh")) {
          throw;
        }
        log_info(target.name, "{}; OpenSSH is to connect", error.reason());
        Target by_openssh = target;
        by_openssh.connect_by.value = config::ConnectBy::openssh;
        return over_master(by_openssh, cancel, limit, full);
      }
    } catch (const Unreachable& error) {
      if (!practice) {
        throw;
      }
      throw Unreachable(
          Error(error.what_failed(), error.reason()).mended_by(Remedy::start_sandbox).because(error.cause()));
    } catch (const Error& error) {
      if (!full || error.cause() != Cause::auth) {
        throw;
      }
      throw all_taken(
          "it asks a question for another login");  // otherwise logging in would report that it is open
    }
  }

  // Whether it is a practice server of src/sandbox, which has a key of its own.
  bool is_practice(const config::Server& server) const {
    return server.private_key && server.private_key->parent_path() == config_.local(".remote/sandbox");
  }

  Target target_of(const config::Server& server) const {
    Target target = resolve(config_, server, options_.user_config);
    if (!options_.known_hosts.empty()) {
      target.known_hosts = {{options_.known_hosts}, "option"};
      for (Target& jump : target.jumps) {
        jump.known_hosts = target.known_hosts;
      }
    }
    return target;
  }

  // Returns nullptr if libssh should connect. `full`: all sessions of the open masters are taken.
  std::unique_ptr<Connection> over_master(const Target& target, const Cancel& cancel, ConnectLimit limit,
                                          bool& full) const {
    auto connection = masters_.connect(target, cancel, limit, &full);
    if (connection || target.connect_by.value == config::ConnectBy::automatic) {
      return connection;
    }
    if (full) {
      masters_.open_further(target, cancel);
    } else {
      masters_.open(target, {}, cancel);
    }
    full = false;
    connection = masters_.connect(target, cancel, limit, &full);
    if (!connection && full) {
      throw all_taken("a new one has none either");
    }
    if (!connection) {
      throw Unreachable("cannot connect",
                        "the server does not answer over the OpenSSH master that was just opened",
                        "check the network and the server, then run the command again");
    }
    return connection;
  }

  std::unique_ptr<Session> connect_patiently(const Target& target, const Cancel& cancel) {
    const bool may_ask = target.password.value.empty() && target.password_env.value.empty() &&
                         target.password_command.value.empty() && !target.only_first_identity;
    std::optional<Secrets::Expecting> expecting;
    if (may_ask) {
      expecting.emplace(secrets_, target.user.value, target.password_prompt());
    }
    Patience patience(std::chrono::seconds(target.connect_timeout_s.value), cancel);
    return connect_target(target, patience);
  }

  // A server under load (sshd's MaxStartups) drops connections before the login. Such attempts are repeated
  // until the time is over.
  std::unique_ptr<Session> connect_target(const Target& target, Patience& patience) {
    auto pause = std::chrono::milliseconds(50);
    for (;;) {
      try {
        return connect_once(target, patience);
      } catch (const Dropped& dropped) {
        const auto jitter =
            std::chrono::milliseconds(random_between(0, static_cast<unsigned>(pause.count())));
        log_info(target.name, "{}: {}; again in {} ms", dropped.what_failed(), dropped.reason(),
                 (pause + jitter).count());
        if (patience.left() <= pause + jitter) {
          throw Unreachable(dropped.because(Cause::refused));
        }
        patience.sleep(pause + jitter);
        pause = std::min(pause * 2, std::chrono::milliseconds(2000));
      }
    }
  }

  // The transport to a server's SSH port.
  struct Transport {
    UniqueFd fd;
    std::string address;               // the peer's address, if this machine can see it
    std::shared_ptr<void> keep;        // kept alive as long as the connection
    std::function<std::string()> why;  // explains why the transport failed when the connection broke
  };

  Transport open_transport(const Target& target, Patience& patience) {
    if (!target.jumps.empty()) {
      const auto bastion = bastion_for(target, patience);
      auto socket = bastion->open(target.host.value, target.port.value);
      const std::string name = bastion->name();
      return {socket->take_fd(), target.host.value, socket, [socket, name] {
                const std::string refusal = socket->refusal();
                if (refusal == forwarding_forbidden) {
                  return fmt::format("jump host {}: {}", name, refusal);
                }
                return refusal.empty() ? "" : fmt::format("jump host {} cannot reach it: {}", name, refusal);
              }};
    }
    if (!target.proxy_command.value.empty()) {
      auto proxy = std::make_shared<ProxyCommand>(target.proxy_command.value);
      return {proxy->take_fd(), target.host.value, proxy, [proxy] {
                const std::string text = proxy->complaint();
                return text.empty() ? "" : fmt::format("ProxyCommand says: {}", text);
              }};
    }
    TcpLink link = connect_tcp(target.host.value, target.port.value, patience);
    return {std::move(link.fd), std::move(link.address), nullptr, [] { return std::string(); }};
  }

  // The connection to the last of the target's jump hosts, which all servers behind it share.
  std::shared_ptr<Bastion> bastion_for(const Target& target, Patience& patience) {
    Target hop = target.jumps.back();
    hop.jumps.assign(target.jumps.begin(), target.jumps.end() - 1);
    std::string key = hop.proxy_command.value;
    for (const Target& jump : target.jumps) {
      key += " " + jump.describe();
    }
    const auto make = [&] {
      Patience own(std::chrono::seconds(hop.connect_timeout_s.value), patience.cancel());
      try {
        return std::make_shared<Bastion>(connect_target(hop, own), hop.describe());
      } catch (const Unreachable& error) {
        throw Unreachable(Error(fmt::format("jump host {}: {}", hop.describe(), error.what_failed()),
                                error.reason(), error.hint())
                              .because(error.cause()));
      } catch (const NeedsOpenssh& error) {
        throw NeedsOpenssh(Error(fmt::format("jump host {}: {}", hop.describe(), error.what_failed()),
                                 error.reason(), error.hint())
                               .because(error.cause()));
      } catch (const Error& error) {
        throw Error(fmt::format("jump host {}: {}", hop.describe(), error.what_failed()), error.reason(),
                    error.hint(), error.kind())
            .mended_by(error.remedy(), error.remedy_detail())
            .because(error.cause());
      }
    };
    auto bastion = bastions_.get(key, patience.cancel(), make);
    patience.restart();  // each hop has its own time limit
    return bastion;
  }

  std::unique_ptr<Session> connect_once(const Target& target, Patience& patience) {
    const Stopwatch watch;
    log_info(target.name, "connecting to {}{}", target.describe(),
             !target.jumps.empty()                 ? " through " + target.jumps.back().describe()
             : !target.proxy_command.value.empty() ? " by ProxyCommand"
                                                   : "");
    Transport transport = open_transport(target, patience);
    log_debug(target.name, "the way to {} is open after {}", transport.address, watch.text());
    SessionPtr session;
    try {
      session =
          shake_hands(std::move(transport.fd), target, preferred_algorithms(known_keys(target)), patience);
    } catch (const Error& error) {
      const std::string why = transport.why();
      if (why.empty()) {
        throw;
      }
      throw Unreachable("cannot connect",
                        fmt::format("{}: {}", host_and_port(target.host.value, target.port.value), why),
                        "check the network between them");
    }
    log_debug(target.name, "keys exchanged after {}", watch.text());
    const auto fresh =
        because(Cause::host_key, [&] { return check_host_key(session.get(), target, config_); });
    if (fresh && options_.on_new_host_key) {
      const std::lock_guard lock(telling_);
      options_.on_new_host_key(*fresh);
    }
    AcceptedKeys keys =
        because(Cause::auth, [&] { return authenticate(session.get(), target, secrets_, patience); });
    log_info(target.name, "logged in after {}", watch.text());
    LoginFacts login = login_of(session.get(), target, std::move(keys));
    return std::make_unique<Session>(std::move(session), std::move(login), std::move(transport.address),
                                     std::move(transport.keep));
  }

  static LoginFacts login_of(ssh_session session, const Target& target, AcceptedKeys keys) {
    LoginFacts login{target.user.value,    target.host.value,     target.port.value,     {},
                     std::move(keys.keys), std::move(keys.files), target.agent_socket(), target.name};
    if (const KeyPtr key = make_key(ssh_get_server_publickey, session)) {
      login.host_key = key_type_name(key.get()) + " " + key_base64(key.get());
    }
    return login;
  }

  config::Config config_;
  ConnectorOptions options_;
  Secrets secrets_;
  Masters masters_;
  std::mutex telling_;
  BastionPool bastions_;
};

}  // namespace

std::unique_ptr<Connection> Connector::connect_with_key(const config::Server&, const std::filesystem::path&,
                                                        const Cancel&) {
  throw Error("cannot prove the key", "this connector has no keys");
}

std::unique_ptr<Connector> make_connector(const config::Config& config, ConnectorOptions options) {
  return std::make_unique<LibsshConnector>(config, std::move(options));
}

}  // namespace remote::ssh
