#include "servers/sync.hpp"

#include <algorithm>

#include <fcntl.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/has_any.hpp"
#include "base/hashing.hpp"
#include "base/login_shell.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "servers/agent.hpp"
#include "servers/disk_hints.hpp"
#include "servers/patterns.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

// rsync removes nothing if it cannot read a name of the project, because the file may still exist.
constexpr std::string_view deletion_skipped = "IO error encountered -- skipping file deletion";

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::vector<std::string> arguments_of(const TransferOptions& options, const std::string& mark) {
  std::vector<std::string> arguments = {
      "-ltp",  // like -a, but without owners, because this machine's owners mean nothing there
      // Other users must not be able to replace code, and no file may run with this user's rights (setuid).
      "--chmod=ug-s,go-w",
      "-s",  // sends paths over the protocol, so that the server's login shell does not interpret them
      "-8",  // prints names unchanged
      "--info=progress2,skip1,del1,name0,stats0", "--no-human-readable", "--out-format=" + mark + "%i %l %n"};
  if (options.update) {
    arguments.emplace_back("-u");
  }
  if (options.checksum) {
    arguments.emplace_back("-c");
  }
  return arguments;
}

// Whether a line of stderr is not a failure: a broken or circular link, or a vanished file. A file's name may
// contain the same words.
bool is_harmless(const std::string& line) {
  const std::size_t name = line.find('"');
  return line.starts_with("symlink has no referent: ") || line.starts_with("file has vanished: ") ||
         line.starts_with("directory has vanished: ") ||
         (line.substr(0, name).ends_with("readlink_stat(") &&
          (line.ends_with("\") failed: Too many levels of symbolic links (40)") ||
           line.ends_with("\") failed: Too many levels of symbolic links (62)")));  // on macOS
}

bool only_harmless(const std::string& err, std::vector<std::string>& warnings) {
  std::vector<std::string> found;
  for (const std::string& line : split(err, '\n')) {
    if (is_harmless(line)) {
      found.push_back(line);
    } else if (!trim(line).empty() && !line.starts_with("rsync error: some files") &&
               !line.starts_with("rsync warning: some files") &&
               line.find(deletion_skipped) == std::string::npos) {
      return false;
    }
  }
  warnings.insert(warnings.end(), found.begin(), found.end());
  return !found.empty();
}

// The last lines, as part of a sentence.
std::string last_said(std::string_view text, std::size_t lines) {
  std::vector<std::string> said;
  for (const std::string& line : split(last_lines(text, lines), '\n')) {
    if (!trim(line).empty()) {
      said.emplace_back(trim(line));
    }
  }
  return join(said, "; ");
}

enum class Side { sends, receives };

// Whether this machine's rsync lacks permission to read or write something. Each line names the side that
// printed it.
bool denied_here(std::string_view err, Side here) {
  return std::ranges::any_of(split(err, '\n'), [here](const std::string& line) {
    return line.starts_with("rsync: [") && line.find("Permission denied") != std::string::npos &&
           line.starts_with("rsync: [sender]") == (here == Side::sends);
  });
}

// Whether this machine's rsync, as the receiver, found its disk full. The server's rsync prints the same
// about its own disk.
bool is_full_here(std::string_view err) {
  return std::ranges::any_of(split(err, '\n'), [](const std::string& line) {
    return (line.starts_with("rsync: [receiver]") || line.starts_with("rsync: [generator]")) &&
           has_any(line, {"No space left on device", "Disk quota exceeded"});
  });
}

[[noreturn]] void throw_failure(const std::string& what, const ssh::RsyncResult& result, Side here) {
  const std::string err(trim(result.err));
  const int remote = result.remote_status ? result.remote_status->shell_code() : 0;
  if (remote == 127 || (remote != 0 && has_any(err, {"rsync: not found", "rsync: command not found",
                                                     "rsync: Command not found"}))) {
    throw Error(what, "rsync was not found on the server",
                "install it there (apt-get install rsync), or add `system_packages: [rsync]` to configs.yaml "
                "and set the server up again");
  }
  if (!result.server_began && result.remote_status) {
    const std::string said = last_said(err, 3);
    throw login_shell_ended(
        said.empty() && !result.remote_status->success() ? result.remote_status->describe() : said);
  }
  if (has_any(err, {"unknown option", "invalid option", "unrecognized option"})) {
    throw Error(what, "rsync is too old: " + last_said(err, 1),
                "3.1 or newer is needed on both sides (on a Mac: brew install rsync)");
  }
  if (here == Side::receives && is_full_here(err)) {
    throw Error(what, last_said(err, 3), "free some space on this machine's disk, then run the command again")
        .because(Cause::disk_full);
  }
  if (const std::string hint = here == Side::sends ? output_disk_hint(err) : ""; !hint.empty()) {
    throw Error(what, last_said(err, 3), hint);
  }
  const std::string reason = "rsync ended with " + result.status.describe() + ": " + last_said(err, 5);
  if (denied_here(err, here)) {
    throw Error(what, reason,
                here == Side::sends ? "make it readable for you here, or name it in exclude_file"
                                    : "check the permissions of the folder here");
  }
  throw Error(what, reason).mended_by(Remedy::check_server);
}

struct Transfer {
  std::string what;                         // what fails, for errors
  Side here;                                // this machine's side
  std::string mark;                         // see add_rsync_line()
  std::vector<std::string> arguments = {};  // for rsync
  std::vector<std::string> paths = {};      // the sources and the destination
  std::string rules = {};                   // see selection_rules()
};

// The completed work is recorded in `report`, even if this throws.
void run(ssh::Connection& connection, Transfer transfer, const TransferOptions& options, const Cancel& cancel,
         SyncReport& report) {
  auto& [what, here, mark, arguments, paths, rules] = transfer;
  arguments.emplace_back("-r");
  if (!is_loopback(connection.peer_address())) {
    arguments.emplace_back("-z");
  }
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  ssh::RsyncRequest request;
  request.args = std::move(arguments);
  request.rules = std::move(rules);
  request.on_line = [&](std::string_view line) { add_rsync_line(report, transfer.mark, line); };
  request.on_progress = options.on_progress;
  request.log = options.log;
  request.pipe_program = options.pipe_program;
  const ssh::RsyncResult result = ssh::run_rsync(connection, request, cancel);
  const int code = result.status.code().value_or(0);
  const bool partial = code == 23 || code == 24;
  if (!result.status.success() && !(partial && only_harmless(result.err, report.warnings))) {
    throw_failure(what, result, here);
  }
}

// Removes links that rsync considered safe but that point outside: into .remote, or through other links. Does
// not follow links on the way to them.
void remove_links_out(const fs::path& folder, SyncReport& report) {
  const fs::path top = resolved(folder);
  std::erase_if(report.changed, [&](const std::string& name) {
    const fs::path link = folder / name;
    const UniqueFd parent = open_parent_beneath(folder, name);
    struct stat info {};
    if (!parent || ::fstatat(parent.get(), link.filename().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISLNK(info.st_mode)) {
      return false;
    }
    const fs::path target = resolved(link);
    const fs::path relative = target.lexically_relative(top);
    // A program that follows a link to a folder containing that link would never end.
    const bool circle = !target.empty() && config::lies_in(resolved(link.parent_path()), target);
    if (!relative.empty() && !circle && *relative.begin() != ".." &&
        std::ranges::none_of(relative, decides_what_runs)) {
      return false;
    }
    ::unlinkat(parent.get(), link.filename().c_str(), 0);
    report.warnings.push_back(name + ": not copied, it is a link that leads " +
                              (circle ? "to a folder that contains it" : "out of the folder"));
    return true;
  });
}

// Whether a name printed by rsync is inside the folder that is copied.
bool is_inside(std::string_view name) {
  const std::vector<std::string> parts = split(name, '/');
  return !name.empty() && !name.starts_with('/') && std::ranges::find(parts, "..") == parts.end();
}

}  // namespace

std::string make_item_mark() {
  return "@" + random_hex(16) + " ";
}

void add_rsync_line(SyncReport& report, std::string_view mark, std::string_view line) {
  constexpr std::string_view newer_mark = " is newer";
  const auto add = [](std::vector<std::string>& names, std::string_view name) {
    if (is_inside(name)) {
      names.emplace_back(name);
    }
  };
  if (!line.starts_with(mark)) {
    if (line.starts_with("ignoring unsafe symlink ")) {
      report.warnings.push_back("not copied, because it leads out of the folder: the link " +
                                std::string(line.substr(std::min(line.find('"'), line.size()))));
    } else if (line.ends_with(newer_mark)) {
      add(report.newer, line.substr(0, line.size() - newer_mark.size()));
    } else if (line.find(deletion_skipped) != std::string_view::npos) {
      report.warnings.emplace_back("nothing was removed, because not all of the project could be read here");
    }
    return;
  }
  line.remove_prefix(mark.size());
  if (line.starts_with("*deleting")) {
    // "*deleting   0 name": %i is padded. A name may begin and end with spaces.
    const std::size_t size_at = line.find_first_not_of(' ', std::string_view("*deleting").size());
    const std::size_t name_at = size_at == std::string_view::npos ? size_at : line.find(' ', size_at);
    // Skip folders, because a dry run also names folders that will stay since they contain other files.
    if (name_at != std::string_view::npos && !line.ends_with('/')) {
      add(report.removed, line.substr(name_at + 1));
    }
    return;
  }
  const std::size_t size_at = line.find(' ');
  const std::size_t name_at = size_at == std::string_view::npos ? size_at : line.find(' ', size_at + 1);
  if (name_at == std::string_view::npos) {
    return;
  }
  // "<f.st......": '<' means sent, '>' received, 'c' created, and '.' that only attributes change.
  const bool content = line[0] == '<' || line[0] == '>' || line[0] == 'c';
  const bool folder = line.size() > 1 && line[1] == 'd';
  if (content && !folder) {
    add(report.changed, line.substr(name_at + 1));
    report.bytes += parse_number<std::uint64_t>(line.substr(size_at + 1, name_at - size_at - 1)).value_or(0);
  }
}

std::vector<std::string> peer_arguments(const SyncOptions& options, const std::string& mark) {
  std::vector<std::string> arguments = arguments_of(options, mark);
  arguments.emplace_back("--partial-dir=.rsync-partial");
  if (options.bytes_per_second > 0) {  // rsync treats 0 as no limit
    arguments.push_back("--bwlimit=" +
                        std::to_string(std::max<std::uint64_t>(options.bytes_per_second / 1024, 1)));
  }
  return arguments;
}

std::string project_spec(const config::Config& config, const config::Server& server) {
  const std::string path = config.project_path_on(server);
  return ssh::remote_spec(path.ends_with('/') ? path : path + '/');
}

void sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
             const SyncOptions& options, const Cancel& cancel, SyncReport& report) {
  Transfer transfer{"cannot send the project", Side::sends, make_item_mark()};
  transfer.arguments = peer_arguments(options, transfer.mark);
  transfer.arguments.emplace_back("-L");
  if (!options.remove.empty()) {
    transfer.arguments.emplace_back("--delete");
    transfer.rules = deletion_rules(options.remove);
  }
  transfer.rules += selection_rules(config, options.leave);
  if (options.dry_run) {
    transfer.arguments.emplace_back("-n");
  }
  std::optional<TempFolder> list;
  if (!options.names.empty()) {
    const fs::path file = list.emplace().path() / "names";
    write_file_atomic(file, join(options.names, std::string(1, '\0')) + '\0');
    transfer.arguments.insert(transfer.arguments.end(),
                              {"--files-from=" + file.string(), "--from0", "--ignore-missing-args"});
  }
  transfer.paths = {(config.project / "").string(), project_spec(config, server)};
  run(connection, std::move(transfer), options, cancel, report);
}

SyncReport sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                   const SyncOptions& options, const Cancel& cancel) {
  SyncReport report;
  sync_to(connection, config, server, options, cancel, report);
  return report;
}

std::vector<std::string> differences(ssh::Connection& connection, const config::Config& config,
                                     const config::Server& server, SyncOptions options,
                                     const Cancel& cancel) {
  options.dry_run = true;
  options.checksum = true;
  options.update = false;
  options.remove.clear();
  return sync_to(connection, config, server, options, cancel).changed;
}

std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel) {
  AgentQuestion question;
  question.what = "look at " + counted(paths.size(), "path");
  question.request = wire::PathsRequest{paths};
  question.timeout = std::chrono::seconds(30);
  auto reply = take_reply<wire::PathsReply>(ask_agent(connection, question, cancel));
  if (reply.kinds.size() != paths.size()) {
    throw Error("cannot check the files", "the server's answer does not name all of them")
        .mended_by(Remedy::tell_more);
  }
  return std::move(reply.kinds);
}

SyncReport sync_from(ssh::Connection& connection, const std::vector<std::string>& remote_paths,
                     const fs::path& local_folder, const PullOptions& options, const Cancel& cancel) {
  make_folders(local_folder);
  const std::string mark = make_item_mark();
  std::vector<std::string> arguments = arguments_of(options, mark);
  // If a log already exists here, both ends are compared, so that a replaced file is copied again.
  if (options.append) {
    arguments.emplace_back("--append-verify");
  } else if (!options.partial_folder.empty()) {
    arguments.push_back("--partial-dir=" + options.partial_folder.string());
  }
  // name1 makes rsync print the links that it skipped. The filters come first, because rsync rejects files
  // that the server sends in spite of them.
  arguments.insert(arguments.end(), {"--safe-links", "--info=name1", "--filter=- .[Rr][Ee][Mm][Oo][Tt][Ee]",
                                     "--filter=- .[Gg][Ii][Tt]"});
  std::optional<TempFolder> list;
  if (!options.names.empty()) {
    const fs::path file = list.emplace().path() / "names";
    write_file_atomic(file, join(options.names, std::string(1, '\0')) + '\0');
    arguments.insert(arguments.end(), {"--files-from=" + file.string(), "--from0", "--ignore-missing-args"});
  }
  if (options.copy_links || list) {
    arguments.emplace_back("-L");
  }
  if (!options.links || list) {
    arguments.emplace_back("--no-links");
  }
  for (const std::string& filter : options.filters) {
    arguments.push_back("--filter=" + filter);
  }
  std::vector<std::string> paths;
  for (const std::string& path : remote_paths) {
    const std::string spec = ssh::remote_spec(path);
    paths.push_back(paths.empty() ? spec : spec.substr(spec.find(':')));
  }
  paths.push_back((absolute_path(local_folder) / "").string());
  SyncReport report;
  try {
    run(connection, {"cannot copy the files here", Side::receives, mark, std::move(arguments), paths},
        options, cancel, report);
  } catch (...) {
    remove_links_out(local_folder, report);
    throw;
  }
  remove_links_out(local_folder, report);
  return report;
}

}  // namespace remote::servers
