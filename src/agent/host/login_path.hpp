#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// The PATH of the user's login shell; "" if unknown. sshd does not read that shell's startup files (.profile,
// .bash_profile, .zprofile) when it runs a command. Each shell is started once per process, for at most 5
// seconds. Any thread.
std::string read_login_path(const Host& host);

// The PATH of an interactive shell, in which .bashrc and .zshrc do not return early.
std::string read_interactive_path(const Host& host);

// Returns the host with the login shell's PATH appended to its own, for programs that the site provides.
Host add_login_path(const Host& host);

}  // namespace remote::agent
