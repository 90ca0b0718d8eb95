#pragma once

#include <chrono>
#include <functional>
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

// A process to run on a server, in the foreground or as a job.
struct ProcessSpec {
  std::string command;   // run by bash if the server has it, or else by sh
  std::string activate;  // shell text that enters the Python environment; may be ""
  Env env;               // exported, in this order; may contain secrets
  Env defaults{};        // for jobs: defaults for variables that are not set otherwise
  std::optional<ContainerRun>
      container{};     // for jobs: the container to run in; then `activate` is for the inside
  std::string tree{};  // for jobs: the digest of the tree to run in; "": none
  // Has the same effect as `activate` without a shell; nullopt if a shell is required.
  std::optional<wire::PythonEnvironment> environment{};
  wire::StartupFiles startup_files = wire::StartupFiles::none;  // for jobs
  std::vector<std::string> programs{};                          // for jobs: see wire::JobSpec
};

// The request that runs it in `project`, the project's folder on the server. Throws Error (usage) for invalid
// variable names and values.
wire::RunRequest make_run(const std::string& project, const ProcessSpec& process);

// Called once if the login shell has not begun the process after a few seconds. Connection::answer_time()
// limits that.
using OnSlowLogin = std::function<void()>;

// Runs a process in the foreground until it has ended. Output is passed to `sink` as it arrives; that of a
// terminal is Stream::out. If this throws, the server stops the process. Throws Error, for example if the
// connection is lost or after `limit` (0: none), and Interrupted on cancel.
ExitStatus run_in_foreground(ssh::Connection& connection, const wire::RunRequest& request,
                             const ssh::Sink& sink, const Cancel& cancel,
                             std::chrono::milliseconds limit = {}, const OnSlowLogin& on_slow_login = {});
// Like run_in_foreground(), but with input. If the request has a terminal, `side` provides its type and size.
ExitStatus run_with_input(ssh::Connection& connection, wire::RunRequest request, const TerminalSide& side,
                          const ssh::Sink& sink, const Cancel& cancel, const OnSlowLogin& on_slow_login = {});

}  // namespace remote::servers
