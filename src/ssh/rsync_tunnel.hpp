#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/events.hpp>
#include <remote/exit_status.hpp>

#include "ssh/connection.hpp"

// rsync over a connection that is there already: no second handshake, no ssh(1), one way to authenticate.
// The local rsync starts a helper program as its "remote shell", which hands its two pipes over to us and
// waits; we run rsync's server command in a channel and carry the bytes.

namespace remote::ssh {

struct RsyncRequest {
  // Options, sources and destination. Local paths must be absolute. The server's side is remote_spec(path).
  std::vector<std::string> args;
  // Filter rules, each with a NUL at its end; empty: none. rsync reads them from a file that no other user
  // can read.
  std::string rules;
  std::function<void(std::string_view)> on_line;             // each line of rsync's stdout
  std::function<void(const TransferProgress&)> on_progress;  // with --info=progress2
  Sink log;                                                  // all output, the server's stderr included
  // The program that rsync starts as its remote shell: `remote`, or remote-rsync-pipe. Empty: the installed
  // one.
  std::filesystem::path pipe_program;
};

struct RsyncResult {
  ExitStatus status = ExitStatus::exited(0);  // the local rsync's
  std::optional<ExitStatus> remote_status;  // the server's shell's; nullopt when it was not asked or not told
  bool server_began = false;                // the login shell came as far as starting rsync
  std::string err;                          // the end of both sides' stderr
};

// The first rsync 3 of PATH and of the folders where macOS has it from Homebrew and MacPorts. The rsync that
// comes with macOS (openrsync) lacks options that a sync needs; --version tells them apart. Throws Error when
// there is none.
std::string local_rsync(const Cancel& cancel);

// Runs rsync to its end. Throws Error when there is no rsync on this machine, when the link breaks, and
// Interrupted on cancel; rsync's own failure is in the result.
RsyncResult run_rsync(Connection& connection, const RsyncRequest& request, const Cancel& cancel);

// Options with which rsync reads filter rules, each with a NUL at its end, from a file, or from "-", its
// input.
std::vector<std::string> rules_from(const std::string& source);
// A path on the server as an argument of rsync. "~/x" and "x" are under the home folder.
std::string remote_spec(std::string_view path);
// A name in which no character has a meaning for rsync's patterns.
std::string rsync_pattern(std::string_view name);

// A line of --info=progress2; nullopt for any other line.
std::optional<TransferProgress> parse_rsync_progress(std::string_view line);

// The work of the hidden subcommand. `arguments`: all that follows "__rsync-pipe". Returns its exit code.
int serve_rsync_pipe(const std::vector<std::string>& arguments);
inline constexpr const char* rsync_pipe_command = "__rsync-pipe";

}  // namespace remote::ssh
