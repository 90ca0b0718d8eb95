#pragma once

#include <string>

#include <remote/terminal.hpp>

#include "servers/run_command.hpp"

// Commands and shells with a terminal on the server.

namespace remote::servers {

// The text that runs a command on a terminal in `project`, the project's folder there (remote_path_word).
// What it leaves behind gets SIGHUP when the terminal goes away, and no more.
std::string terminal_script(const std::string& project, const ProcessSpec& process);

// The text that becomes the login shell of the user, in the project's folder and environment. The command of
// `process` is not used.
std::string shell_script(const std::string& project, const ProcessSpec& process);

// Runs one of these to its end. Output goes to `sink` as it comes, all of it as Stream::out. Throws Error on
// a lost link, Interrupted on cancel (after closing the channel, so that the server hangs the terminal up).
ExitStatus run_on_terminal(ssh::Connection& connection, const std::string& script, const TerminalSide& side,
                           const ssh::Sink& sink, const Cancel& cancel);

}  // namespace remote::servers
