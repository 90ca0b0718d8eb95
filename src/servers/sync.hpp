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

// Sends the project to a server, and brings files back. Semantics of labml_remote's rsync: archive, compress,
// never overwrite what is newer on the other side, follow symlinks, exclude.txt.

namespace remote::servers {

// What a transfer in either direction takes.
struct TransferOptions {
  bool update = false;    // leave what is newer on the receiving side alone
  bool checksum = false;  // compare contents, not size and time
  std::function<void(const TransferProgress&)> on_progress = {};
  ssh::Sink log = {};
  std::filesystem::path pipe_program = {};  // see RsyncRequest
};

struct SyncOptions : TransferOptions {
  SyncOptions() { update = true; }
  bool dry_run = false;
  // Names that may be removed on the server where they are gone here, folders with a slash at the end (see
  // SentFiles); nothing else is. A folder that then holds other files stays.
  std::vector<std::string> remove;
  std::vector<std::string> names;  // only these files; none: all
  std::vector<std::string> leave;  // names that are not sent whatever the patterns say: links (see links.hpp)
  std::uint64_t bytes_per_second = 0;  // 0: as fast as it goes
};

// Sends config.project to its folder on the server. What is above that folder must be there. Throws Error.
SyncReport sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                   const SyncOptions& options, const Cancel& cancel);

// What differs between the project here and on the server, by content; nothing is changed.
std::vector<std::string> differences(ssh::Connection& connection, const config::Config& config,
                                     const config::Server& server, SyncOptions options, const Cancel& cancel);

// The project's folder on the server, as rsync takes it: with a slash at its end.
std::string project_spec(const config::Config& config, const config::Server& server);

// Those with which one server takes the project from another (see peers.hpp). `mark`: see add_rsync_line().
std::vector<std::string> peer_arguments(const SyncOptions& options, const std::string& mark);

// What lines begin with that the rsync of this run prints itself. The other side's rsync can make it print
// any other line, and does not know the mark.
std::string make_item_mark();
// Adds what one line of rsync's output says, when it ran with these options and this mark. Names that are
// absolute or contain ".." are dropped.
void add_rsync_line(SyncReport& report, std::string_view mark, std::string_view line);

using wire::PathKind;

// What paths on the server are, in their order; "~/x" is in the home folder. Throws Error.
std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel);

struct PullOptions : TransferOptions {
  bool append = false;               // files that only grow (logs): send what was added
  bool links = true;                 // symlinks come too
  bool copy_links = false;           // what symlinks lead to, instead of the links
  std::vector<std::string> filters;  // rsync filter rules in order: "+ */", "- *.tmp"
  // Only these files, by their names in the one remote path, which has a slash at its end; they get these
  // names in the local folder. What a link leads to comes in its place. None: all.
  std::vector<std::string> names = {};
  // Where an interrupted transfer keeps what it has of a file; made if missing. Not used with `append`.
  std::filesystem::path partial_folder = {};
};

// Brings files or folders from the server into `local_folder` (made if missing). A path with a slash at its
// end means the folder's content, as rsync has it. An interrupted transfer goes on when it is repeated. What
// decides_what_runs() is not brought, nor are links that lead out of `local_folder` (a warning names them),
// nor the rights to act as the owner (setuid) or to write for everybody. Throws Error.
SyncReport sync_from(ssh::Connection& connection, const std::vector<std::string>& remote_paths,
                     const std::filesystem::path& local_folder, const PullOptions& options,
                     const Cancel& cancel);

}  // namespace remote::servers
