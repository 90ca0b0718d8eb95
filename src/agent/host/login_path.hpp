#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// The PATH of the user's login shell, whose start files (.profile, .bash_profile, .zprofile) sshd does not
// read for a command; "" if it is unknown. Each shell is started once per process, for at most 5 seconds. Any
// thread.
std::string read_login_path(const Host& host);

// The PATH of an interactive shell: .bashrc and .zshrc do not return early.
std::string read_interactive_path(const Host& host);

// The host with the PATH of the login shell after its own, for programs of the site.
Host add_login_path(const Host& host);

}  // namespace remote::agent
