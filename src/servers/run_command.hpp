#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

namespace remote::servers {

// `script` as the text for `sh -s` (see ssh::wrap_script), with guard.sh before it: when its stdin ends
// before it does (Ctrl-C, a lost link), the script and its process group get TERM, and KILL five seconds
// later. To be run with ExecRequest::keep_input.
std::string guarded_script(std::string_view script);

// A command for one server's project folder, in the foreground of a connection.
struct RunCommand {
  std::string command;   // run by bash where the server has it, else sh
  std::string project;   // the project's folder there (remote_path_word)
  std::string activate;  // sh text that enters the Python environment; may be ""
  std::vector<std::pair<std::string, std::string>> env;  // exported, in this order
};

// The text for `sh -s`, guarded: nothing that `remote run` started is left behind. What the command itself
// put into the background and left there on its ordinary end stays.
std::string run_script(const RunCommand& command);

// Runs it to its end. Output goes to `sink` as it comes. Throws Error on a lost link, Interrupted on
// cancel (after closing the channel, so that the server ends the command).
ExitStatus run_command(ssh::Connection& connection, const RunCommand& command, const ssh::Sink& sink,
                       const Cancel& cancel);

}  // namespace remote::servers
