#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>
#include <remote/terminal.hpp>

#include "servers/container.hpp"
#include "ssh/connection.hpp"
#include "wire/run.hpp"
#include "wire/start.hpp"

namespace remote::servers {

// What is to run on a server, in the foreground or as a job.
struct ProcessSpec {
  std::string command;                      // run by bash where the server has it, else sh
  std::string activate;                     // sh text that enters the Python environment; may be ""
  Env env;                                  // exported, in this order; may hold secrets
  Env defaults{};                           // of a job: for variables that nothing else sets
  std::optional<ContainerRun> container{};  // of a job: what it runs in; `activate` is for the inside then
  std::string tree{};                       // of a job: the digest of the tree that it runs in; "": none
  // Has the effect of `activate`, without a shell; nullopt if only that does.
  std::optional<wire::PythonEnvironment> environment{};
  wire::StartupFiles startup_files = wire::StartupFiles::none;  // of a job
  std::vector<std::string> programs{};                          // of a job: see wire::JobSpec
};

// Returns the request that runs it in `project`, the project's folder on the server. Throws Error (usage) for
// names and values that cannot be variables.
wire::RunRequest make_run(const std::string& project, const ProcessSpec& process);

// Runs a process in the foreground until it has ended. Output goes to `sink` as it arrives; that of a
// terminal is Stream::out. The server ends the process if this throws: Error, for example on a lost link or
// after `limit` (0: none), and Interrupted on cancel.
ExitStatus run_in_foreground(ssh::Connection& connection, const wire::RunRequest& request,
                             const ssh::Sink& sink, const Cancel& cancel,
                             std::chrono::milliseconds limit = {});
// Like run_in_foreground(), but with input. If the request has a terminal, `side` sets its type and size.
ExitStatus run_with_input(ssh::Connection& connection, wire::RunRequest request, const TerminalSide& side,
                          const ssh::Sink& sink, const Cancel& cancel);

}  // namespace remote::servers
