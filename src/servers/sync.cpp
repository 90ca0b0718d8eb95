#include "servers/sync.hpp"

#include <algorithm>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "servers/action.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

// Names begin here on a line of our --out-format; it sets them apart from rsync's own messages.
constexpr std::string_view item_mark = "@item ";
// rsync removes nothing where a name of the project cannot be read: it may be there after all.
constexpr std::string_view deletion_skipped = "IO error encountered -- skipping file deletion";

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

// Characters that have a meaning in rsync's patterns, made plain.
std::string pattern_of(std::string_view name) {
  std::string pattern;
  const bool wild = name.find_first_of("*?[") != std::string_view::npos;
  for (const char c : name) {
    if (wild && std::string_view("*?[\\").find(c) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern;
}

// rsync's rules that put these names at risk, and nothing else.
std::string deletion_rules(const std::vector<std::string>& names) {
  std::string rules;
  for (const std::string& name : names) {
    if (name.find_first_of("\r\n") == std::string::npos) {  // else it would be two rules
      rules += "R /" + pattern_of(name) + "\n";
    }
  }
  return rules + "P *\n";
}

std::vector<std::string> common_arguments(const ssh::Connection& connection) {
  std::vector<std::string> arguments = peer_arguments();
  arguments.insert(arguments.begin(), "-r");
  if (!is_loopback(connection.peer_address())) {
    arguments.push_back("-z");
  }
  return arguments;
}

// Lines of stderr that are no failure: a link to nowhere (editors leave such), a file that vanished.
bool only_harmless(const std::string& err, std::vector<std::string>& warnings) {
  std::vector<std::string> found;
  for (const std::string& line : split(err, '\n')) {
    if (line.find("has no referent") != std::string::npos || line.find("vanished") != std::string::npos) {
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

[[noreturn]] void throw_failure(const std::string& what, const ssh::RsyncResult& result) {
  const std::string err(trim(result.err));
  const int remote = result.remote_status ? result.remote_status->shell_code() : 0;
  if (remote == 127 || (remote != 0 && (err.find("rsync: not found") != std::string::npos ||
                                        err.find("rsync: command not found") != std::string::npos ||
                                        err.find("rsync: Command not found") != std::string::npos))) {
    throw Error(what, "rsync was not found on the server",
                "install it there (apt-get install rsync), or add `system_packages: [rsync]` to configs.yaml "
                "and set the server up again");
  }
  if (!result.server_began && result.remote_status) {
    throw login_shell_ended(last_lines(err, 3));
  }
  if (err.find("unknown option") != std::string::npos || err.find("invalid option") != std::string::npos ||
      err.find("unrecognized option") != std::string::npos) {
    throw Error(what, "rsync is too old: " + last_lines(err, 1),
                "3.1 or newer is needed on both sides (on a Mac: brew install rsync)");
  }
  if (err.find("No space left on device") != std::string::npos) {
    throw Error(what, last_lines(err, 3), "make room on the disk, then run the command again");
  }
  throw Error(what, "rsync ended with " + result.status.describe() + ": " + last_lines(err, 5));
}

SyncReport run(ssh::Connection& connection, std::vector<std::string> arguments,
               const std::function<void(const TransferProgress&)>& on_progress, const ssh::Sink& log,
               const fs::path& pipe_program, const std::string& what, const Cancel& cancel) {
  SyncReport report;
  ssh::RsyncRequest request;
  request.args = std::move(arguments);
  request.on_line = [&report](std::string_view line) { add_rsync_line(report, line); };
  request.on_progress = on_progress;
  request.log = log;
  request.pipe_program = pipe_program;
  const ssh::RsyncResult result = ssh::run_rsync(connection, request, cancel);
  const int code = result.status.code().value_or(0);
  const bool partial = code == 23 || code == 24;
  if (!result.status.success() && !(partial && only_harmless(result.err, report.warnings))) {
    throw_failure(what, result);
  }
  return report;
}

// rsync makes the last folder of a path itself; what is above it must be there.
void make_parents(ssh::Connection& connection, const std::string& path, const Cancel& cancel) {
  std::string_view rest = path;
  if (rest.starts_with("~/")) {
    rest.remove_prefix(2);
  }
  while (rest.ends_with('/')) {
    rest.remove_suffix(1);
  }
  // A name with * or ? in it is found by rsync as a pattern is, so it must be there too.
  if (rest.find_first_of("/*?[") == std::string_view::npos) {
    return;
  }
  ssh::ExecRequest request;
  request.what = "making the project's folder";
  request.input = Script().append("mkdir -p -- " + remote_path_word(path)).input();
  const ExecResult result = connection.exec(request, cancel);
  if (!result.status.success()) {
    throw Error("cannot make the project's folder " + path, last_lines(trim(result.err), 2),
                "choose another `remote_path` in configs.yaml");
  }
}

}  // namespace

void add_rsync_line(SyncReport& report, std::string_view line) {
  constexpr std::string_view newer_mark = " is newer";
  if (!line.starts_with(item_mark)) {
    if (line.ends_with(newer_mark)) {
      report.newer.emplace_back(line.substr(0, line.size() - newer_mark.size()));
    } else if (line.find(deletion_skipped) != std::string_view::npos) {
      report.warnings.emplace_back("nothing was removed, because not all of the project could be read here");
    }
    return;
  }
  line.remove_prefix(item_mark.size());
  if (line.starts_with("*deleting")) {
    // "*deleting   0 name": %i is padded; a name may begin and end with spaces
    const std::size_t size_at = line.find_first_not_of(' ', std::string_view("*deleting").size());
    const std::size_t name_at = size_at == std::string_view::npos ? size_at : line.find(' ', size_at);
    // Folders are not told: a dry run also names ones that will stay, as other files are in them.
    if (name_at != std::string_view::npos && !line.ends_with('/')) {
      report.removed.emplace_back(line.substr(name_at + 1));
    }
    return;
  }
  const std::size_t size_at = line.find(' ');
  const std::size_t name_at = size_at == std::string_view::npos ? size_at : line.find(' ', size_at + 1);
  if (name_at == std::string_view::npos) {
    return;
  }
  // "<f.st......": sent, '>' received, 'c' made; '.' changes attributes alone.
  const bool content = line[0] == '<' || line[0] == '>' || line[0] == 'c';
  const bool folder = line.size() > 1 && line[1] == 'd';
  if (content && !folder) {
    report.changed.emplace_back(line.substr(name_at + 1));
    report.bytes += parse_number<std::uint64_t>(line.substr(size_at + 1, name_at - size_at - 1)).value_or(0);
  }
}

std::vector<std::string> peer_arguments() {
  return {"-ltp",  // archive, without owners: those of this machine mean nothing there
          "-s",    // paths go over the protocol, past the login shell of the server
          "-8",    // names as they are
          "--info=progress2,skip1,del1,name0,stats0",
          "--no-human-readable",
          "--out-format=" + std::string(item_mark) + "%i %l %n",
          "--partial-dir=.rsync-partial"};
}

std::vector<std::string> selection_arguments(const config::Config& config) {
  std::vector<std::string> arguments = {"-L"};
  // The first rule that matches wins: ours stand before the user's.
  for (const std::string& pattern : always_excluded(config)) {
    arguments.push_back("--exclude=" + pattern);
  }
  const fs::path exclude_file = config.local(config.exclude_file);
  if (fs::exists(exclude_file)) {
    arguments.push_back("--exclude-from=" + exclude_file.string());
  }
  return arguments;
}

std::vector<std::string> always_excluded(const config::Config& config) {
  std::vector<std::string> patterns = {
      "/" + pattern_of(config.remote_jobs_folder_name), "/" + pattern_of(config.remote_scripts_folder_name),
      // Keys, passwords in configs.yaml, logs and jobs: nothing of it is of use there.
      "/.remote", ".rsync-partial"};
  const bool in_project = config.python.manager == config::PythonManager::venv ||
                          config.python.manager == config::PythonManager::uv;
  const std::string folder = config.python.environment.empty() ? ".venv" : config.python.environment;
  if (in_project && !folder.starts_with('/') && !folder.starts_with('~')) {
    patterns.push_back("/" + pattern_of(folder));  // each server makes its own
  }
  return patterns;
}

SyncReport sync_to(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                   const SyncOptions& options, const Cancel& cancel) {
  std::string path = config.project_path_on(server);
  if (!options.parents_exist && !options.dry_run) {
    make_parents(connection, path, cancel);
  }
  std::vector<std::string> arguments = common_arguments(connection);
  std::optional<TempFolder> rules;
  std::string merge;
  if (!options.remove.empty()) {
    // These stand before the user's patterns, of which an include ("+ *.py") would put files of jobs at risk,
    // and once more after them: a "!" among them clears what stood before. They mean nothing to the sender.
    const fs::path file = rules.emplace().path() / "rules";
    write_file_atomic(file, deletion_rules(options.remove));
    merge = "--filter=merge " + file.string();
    arguments.push_back("--delete");
    arguments.push_back(merge);
  }
  for (std::string& argument : selection_arguments(config)) {
    arguments.push_back(std::move(argument));
  }
  if (rules) {
    arguments.push_back(merge);
  }
  if (options.update) {
    arguments.push_back("-u");
  }
  if (options.dry_run) {
    arguments.push_back("-n");
  }
  if (options.checksum) {
    arguments.push_back("-c");
  }
  if (options.kilobytes_per_second > 0) {
    arguments.push_back("--bwlimit=" + std::to_string(options.kilobytes_per_second));
  }
  arguments.push_back("--");
  arguments.push_back((config.project / "").string());
  if (!path.ends_with('/')) {
    path += '/';
  }
  arguments.push_back(ssh::remote_spec(path));
  return run(connection, std::move(arguments), options.on_progress, options.log, options.pipe_program,
             "cannot send the project", cancel);
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

SyncReport sync_from(ssh::Connection& connection, const std::vector<std::string>& remote_paths,
                     const fs::path& local_folder, const PullOptions& options, const Cancel& cancel) {
  make_folders(local_folder);
  std::vector<std::string> arguments = common_arguments(connection);
  if (options.append) {
    // Both ends compare what is there already: a file that was replaced comes anew.
    std::erase(arguments, "--partial-dir=.rsync-partial");
    arguments.push_back("--append-verify");
  }
  if (options.copy_links) {
    arguments.push_back("-L");
  }
  if (!options.links) {
    arguments.push_back("--no-links");
  }
  if (!options.recursive) {
    arguments.push_back("--no-recursive");
  }
  if (options.update) {
    arguments.push_back("-u");
  }
  if (options.dry_run) {
    arguments.push_back("-n");
  }
  for (const std::string& filter : options.filters) {
    arguments.push_back("--filter=" + filter);
  }
  arguments.push_back("--");
  for (const std::string& path : remote_paths) {
    const std::string spec = ssh::remote_spec(path);
    arguments.push_back(arguments.back() == "--" ? spec : spec.substr(spec.find(':')));
  }
  arguments.push_back((fs::absolute(local_folder) / "").string());
  return run(connection, std::move(arguments), options.on_progress, options.log, options.pipe_program,
             "cannot bring the files here", cancel);
}

}  // namespace remote::servers
