#include "ssh/handshake.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "ssh/errors.hpp"
#include "ssh/tcp.hpp"

namespace remote::ssh {

SessionPtr shake_hands(UniqueFd fd, const Target& target, const std::string& host_key_algorithms,
                       const Patience& patience) {
  SessionPtr session(ssh_new());
  if (!session) {
    throw Error("cannot connect", "libssh has no memory for a session");
  }
  const auto set = [&](ssh_options_e option, const void* value) {
    if (ssh_options_set(session.get(), option, value) != SSH_OK) {
      throw Error("cannot connect", last_error(session.get()));
    }
  };
  const bool no = false;
  const int yes = 1;
  set(SSH_OPTIONS_PROCESS_CONFIG, &no);  // ~/.ssh/config is read by ssh_config.cpp
  set(SSH_OPTIONS_HOST, target.host.value.c_str());
  set(SSH_OPTIONS_USER, target.user.value.c_str());
  set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null");  // checked by host_keys.cpp
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  set(SSH_OPTIONS_NODELAY, &yes);
  if (!host_key_algorithms.empty()) {
    set(SSH_OPTIONS_HOSTKEYS, host_key_algorithms.c_str());
  }
  const int socket = fd.get();
  set(SSH_OPTIONS_FD, &socket);
  ssh_set_blocking(session.get(), 0);
  fd.release();  // libssh closes it from here on
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
      if (patience.over()) {
        throw Unreachable(
            "cannot connect",
            fmt::format("{} accepted the connection, but no SSH server answered within {:.3g} s", where,
                        static_cast<double>(patience.time().count()) / 1000.0),
            "is it an SSH port? connect_timeout in configs.yaml allows more time");
      }
    }
    const std::string reason = last_error(session.get(), "the connection was closed");
    if (reason.find("too large banner") != std::string::npos) {
      throw Unreachable("cannot connect", fmt::format("{} does not speak SSH", where),
                        "is it an SSH port? `port` in configs.yaml sets another");
    }
    // Before the server's version line nothing can have been wrong but the server's load; a server that
    // speaks something else is named as such by libssh.
    if (ssh_get_serverbanner(session.get()) == nullptr || reason.find("Socket error") != std::string::npos) {
      throw Dropped("cannot connect", fmt::format("{} closed the connection before login: {}", where, reason),
                    "the server may be busy (MaxStartups in its sshd_config), or refuse this address");
    }
    throw Unreachable("cannot connect", fmt::format("{}: {}", where, reason),
                      "server and libssh may have no algorithm in common; try `ssh -v`");
  }
  // libssh makes the socket blocking again once it is connected; a big write would then stop everything.
  ::fcntl(ssh_get_fd(session.get()), F_SETFL, O_NONBLOCK);
  return session;
}

}  // namespace remote::ssh
