#pragma once

#include <string>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "servers/container.hpp"
#include "ssh/connection.hpp"

namespace remote::servers {

// What is to run on a server, in the foreground or as a job.
struct ProcessSpec {
  std::string command;                      // run by bash where the server has it, else sh
  std::string activate;                     // sh text that enters the Python environment; may be ""
  Env env;                                  // exported, in this order; may hold secrets
  std::optional<ContainerRun> container{};  // of a job: what it runs in; `activate` is for the inside then
  std::string tree{};                       // of a job: the digest of the tree that it runs in; "": none
};

// The text for `sh -s`, guarded: runs it in `project`, the project's folder there (remote_path_word). Nothing
// that `remote run` started is left behind. What the command itself put into the background and left there on
// its ordinary end stays.
std::string run_script(const std::string& project, const ProcessSpec& process);

// Runs it to its end. Output goes to `sink` as it comes. Throws Error on a lost link, Interrupted on
// cancel (after closing the channel, so that the server ends the command).
ExitStatus run_command(ssh::Connection& connection, const std::string& project, const ProcessSpec& process,
                       const ssh::Sink& sink, const Cancel& cancel);

}  // namespace remote::servers
