#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/events.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"
#include "ssh/rsync_tunnel.hpp"
#include "wire/files.hpp"

// Sends the project to a server, and copies files back. Works like labml_remote's rsync: archive, compress,
// never overwrite newer files on the other side, follow symbolic links, exclude.txt.

namespace remote::servers {

struct TransferOptions {
  bool update = false;    // skip files that are newer on the receiving side
  bool checksum = false;  // compare contents instead of size and time
  std::function<void(const TransferProgress&)> on_progress = {};
  ssh::Sink log = {};
  std::filesystem::path pipe_program = {};  // see RsyncRequest
};

struct SyncOptions : TransferOptions {
  SyncOptions() { update = true; }
  bool dry_run = false;
  // Names that may be removed on the server if they do not exist here, folders with a trailing slash (see
  // SentFiles). Nothing else is removed. A folder that still contains other files is kept.
  std::vector<std::string> remove;
  std::vector<std::string> names;  // only these files; empty: all
  std::vector<std::string> leave;  // names that are never sent, whatever the patterns: links (see links.hpp)
  std::uint64_t bytes_per_second = 0;  // 0: unlimited
};

// Sends config.project to its folder on the server, whose parent must exist. Throws Error.
SyncReport sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                   const SyncOptions& options, const Cancel& cancel);
// Adds to a report, which contains the completed work even if this throws.
void sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
             const SyncOptions& options, const Cancel& cancel, SyncReport& report);

// The files that differ in content between here and the server. Changes nothing.
std::vector<std::string> differences(ssh::Connection& connection, const config::Config& config,
                                     const config::Server& server, SyncOptions options, const Cancel& cancel);

// The project's folder on the server, formatted for rsync, with a trailing slash.
std::string project_spec(const config::Config& config, const config::Server& server);

// rsync arguments for copying the project from one server to another (see peers.hpp). `mark`: see
// add_rsync_line().
std::vector<std::string> peer_arguments(const SyncOptions& options, const std::string& mark);

// A mark for the lines that rsync itself prints in this run. The other side's rsync can make it print any
// other line, but does not know the mark.
std::string make_item_mark();
// Adds the information in a line of rsync's output to the report, if rsync ran with these options and this
// mark. Skips names that are absolute or contain "..".
void add_rsync_line(SyncReport& report, std::string_view mark, std::string_view line);

using wire::PathKind;

// The kinds of paths on the server, in the same order. "~/x" is relative to the home directory. Throws Error.
std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel);

struct PullOptions : TransferOptions {
  bool append = false;               // for files that only grow (logs): copy only what was added
  bool links = true;                 // copy symbolic links too
  bool copy_links = false;           // copy the targets of symbolic links instead of the links
  std::vector<std::string> filters;  // rsync's filter rules, in order: "+ */", "- *.tmp"
  // Only these files, by their names in the single remote path, which must have a trailing slash; they get
  // the same names in the local folder. The target of a link is copied instead of the link. Empty: all.
  std::vector<std::string> names = {};
  // Where an interrupted transfer keeps partial files; created if missing. Not used with `append`.
  std::filesystem::path partial_folder = {};
};

// Copies files or folders from the server to `local_folder`, which is created if missing. A trailing slash
// means the folder's content, as in rsync. If an interrupted transfer is repeated, it continues. Skips files
// for which decides_what_runs() is true, and links that point outside `local_folder` (a warning names them).
// Drops setuid bits and write permission for others. Throws Error.
SyncReport sync_from(ssh::Connection& connection, const std::vector<std::string>& remote_paths,
                     const std::filesystem::path& local_folder, const PullOptions& options,
                     const Cancel& cancel);

}  // namespace remote::servers
