#pragma once

#include <string>

#include <remote/cancel.hpp>

#include "servers/process_spec.hpp"
#include "ssh/connection.hpp"

namespace remote::servers {

// The text for `sh -s`, guarded: runs it in `project`, the project's folder there (remote_path_word). Nothing
// that `remote run` started is left behind. What the command itself put into the background and left there on
// its ordinary end stays.
std::string run_script(const std::string& project, const ProcessSpec& process);

// Runs it to its end. Output goes to `sink` as it comes. Throws Error on a lost link, Interrupted on
// cancel (after closing the channel, so that the server ends the command).
ExitStatus run_command(ssh::Connection& connection, const std::string& project, const ProcessSpec& process,
                       const ssh::Sink& sink, const Cancel& cancel);

}  // namespace remote::servers
