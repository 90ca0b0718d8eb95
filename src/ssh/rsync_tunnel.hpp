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

// Runs rsync over an existing connection, without a second handshake and without ssh(1). The local rsync
// starts a helper program as its "remote shell". The helper passes its two pipes to this process and waits;
// this process runs rsync's server command in a channel and transfers the bytes.

namespace remote::ssh {

struct RsyncRequest {
  // Options, sources and destination. Local paths must be absolute. Paths on the server must be formatted
  // with remote_spec(path).
  std::vector<std::string> args;
  // Filter rules, each terminated by NUL; empty: none. rsync reads them from a file that other users cannot
  // read.
  std::string rules;
  std::function<void(std::string_view)> on_line;             // called for each line of rsync's stdout
  std::function<void(const TransferProgress&)> on_progress;  // with --info=progress2
  Sink log;                                                  // gets all output, including the server's stderr
  // The program that rsync starts as its remote shell: `remote` or remote-rsync-pipe. Empty: the installed
  // one.
  std::filesystem::path pipe_program;
};

struct RsyncResult {
  ExitStatus status = ExitStatus::exited(0);  // of the local rsync
  std::optional<ExitStatus>
      remote_status;  // of the shell on the server; nullopt if it was not started or its status is unknown
  bool server_began = false;  // the login shell has reached the start of rsync
  std::string err;            // the end of stderr, from both sides
};

// The first rsync 3 on PATH or in the folders of Homebrew and MacPorts on macOS. macOS's own rsync
// (openrsync) lacks options that a sync needs; --version distinguishes them. Throws Error if there is none.
std::string local_rsync(const Cancel& cancel);

// Runs rsync to its end. Throws Error if this machine has no rsync or if the connection breaks, and
// Interrupted on cancel. If rsync itself fails, that is in the result.
RsyncResult run_rsync(Connection& connection, const RsyncRequest& request, const Cancel& cancel);

// Options that make rsync read filter rules, each terminated by NUL, from a file or from its stdin ("-").
std::vector<std::string> rules_from(const std::string& source);
// Formats a path on the server as an argument of rsync. "~/x" and "x" are relative to the home directory.
std::string remote_spec(std::string_view path);
// Escapes a name, so that no character has a meaning in rsync's patterns.
std::string rsync_pattern(std::string_view name);

// Parses a line of --info=progress2; nullopt for any other line.
std::optional<TransferProgress> parse_rsync_progress(std::string_view line);

// Implements the hidden subcommand. `arguments` follow "__rsync-pipe". Returns the exit code.
int serve_rsync_pipe(const std::vector<std::string>& arguments);
inline constexpr const char* rsync_pipe_command = "__rsync-pipe";

}  // namespace remote::ssh
