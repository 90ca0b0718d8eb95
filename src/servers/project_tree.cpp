#include "servers/project_tree.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include <remote/error.hpp>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/patterns.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view mark = "@name ";

// Whether rsync (which prints control characters as \#012) and sha256sum write the name unchanged.
bool is_plain(std::string_view name) {
  return name.find('\\') == std::string_view::npos && !name.empty() && name != "./";
}

// True only if it certainly does not exist. Files in an unreadable folder are hidden, so they are kept.
bool is_gone(const fs::path& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() == fs::file_type::not_found;
}

// Whether it is a file inside the project, under the name that rsync prints. rsync prints control characters
// as \#012.
bool is_recordable(std::string_view name) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\177'; };
  if (name.empty() || name.ends_with('/') || name.find("\\#") != std::string_view::npos ||
      std::ranges::any_of(name, control)) {
    return false;
  }
  const std::vector<std::string> parts = split(name, '/');
  return std::ranges::none_of(
      parts, [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

// Whether nobody would expect it on a server: caches, environments, files of editors and version control, and
// files that `remote pull` has copied here. `path` is relative to the project.
bool is_missed_by_nobody(const config::Config& config, const std::string& path, const std::string& name) {
  if (path == "results" && !config.outputs.empty()) {
    return true;
  }
  return name.starts_with('.') || name == "__pycache__" || name == "venv" || name.ends_with('~') ||
         name.ends_with(".pyc") || name.ends_with(".egg-info") || name == config.python.environment;
}

constexpr std::uintmax_t most_record = std::uintmax_t{1}
                                       << 30U;  // for the record of what was sent to a server

constexpr std::size_t most_counted = 20'000;  // skipped files whose sizes are added up

// The names that rsync itself would send from this folder to an empty one. `follow`: includes the targets of
// links.
std::vector<std::string> listed_by_rsync(const config::Config& config, const fs::path& folder,
                                         const Cancel& cancel, const std::vector<std::string>& leave,
                                         bool follow) {
  const TempFolder empty;
  SubprocessSpec spec;
  spec.argv = {ssh::local_rsync(cancel), "-rn", "-8", "--no-human-readable",
               "--out-format=" + std::string(mark) + "%n"};
  std::ranges::move(ssh::rules_from("-"), std::back_inserter(spec.argv));
  if (follow) {
    spec.argv.emplace_back("-L");
  }
  spec.argv.insert(spec.argv.end(), {"--", (folder / "").string(), (empty.path() / "").string()});
  spec.set_env = {{"LC_ALL", "C"}};
  spec.unset_env = "RSYNC_";
  const ExecResult result = run_subprocess(spec, selection_rules(config, leave), cancel);
  const auto code = result.status.code();
  if (!result.status.success() && code != 23 && code != 24) {  // broken links, vanished files
    throw Error("cannot list the project", last_lines(trim(result.err), 2),
                "can you read all of the project's files? .remote/exclude.txt excludes some");
  }
  std::vector<std::string> names;
  for (const std::string& line : split(result.out, '\n')) {
    if (line.starts_with(mark)) {
      names.push_back(line.substr(mark.size()));
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> selected_names(const config::Config& config, const fs::path& folder,
                                        const Cancel& cancel, const std::vector<std::string>& leave) {
  return listed_by_rsync(config, folder, cancel, leave, true);
}

std::vector<SkippedPart> skipped_parts(const config::Config& config, const Cancel& cancel) {
  const std::vector<std::string> names = listed_by_rsync(config, config.project, cancel, {}, false);
  const std::set<std::string> selected(names.begin(), names.end());
  std::vector<SkippedPart> parts;
  std::size_t counted = 0;
  const auto count = [&](const fs::directory_entry& top, SkippedPart& part) {
    std::error_code error;
    if (!top.is_directory(error)) {
      part.bytes = top.file_size(error);
      return;
    }
    part.name += '/';
    for (fs::recursive_directory_iterator at(top, error), end; !error && at != end; at.increment(error)) {
      cancel.check();
      std::error_code bad;
      if (at->symlink_status(bad).type() == fs::file_type::regular) {
        if (++counted > most_counted) {
          part.at_least = true;
          return;
        }
        const std::uintmax_t size = at->file_size(bad);
        part.bytes += bad ? 0 : size;
      }
    }
  };
  const std::function<void(const fs::path&, const std::string&)> walk = [&](const fs::path& folder,
                                                                            const std::string& prefix) {
    cancel.check();
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string file = at->path().filename().string();
      const std::string name = prefix + file;
      std::error_code bad;
      const fs::file_type type = at->symlink_status(bad).type();
      const bool folder_there = type == fs::file_type::directory;
      if (folder_there && selected.contains(name + "/")) {
        walk(at->path(), name + "/");
      } else if ((folder_there || type == fs::file_type::regular) && !selected.contains(name) &&
                 is_recordable(name) && !is_missed_by_nobody(config, name, file)) {
        count(*at, parts.emplace_back(SkippedPart{name}));
      }
    }
  };
  walk(config.project, "");
  std::ranges::stable_sort(parts, std::ranges::greater(), &SkippedPart::bytes);
  return parts;
}

const std::vector<std::string>& ProjectTree::names(const std::vector<std::string>& leave,
                                                   const Cancel& cancel) {
  const std::lock_guard lock(names_mutex_);
  if (!names_) {
    std::vector<std::string> names = selected_names(config_, config_.project, cancel, leave);
    std::erase_if(names, [](const std::string& name) { return !is_plain(name); });
    names_ = std::move(names);
  }
  return *names_;
}

std::optional<std::string> ProjectTree::digest(const std::string& name, const Cancel& cancel) {
  // One file at a time, because several would only compete for the same disk.
  const std::lock_guard lock(digests_mutex_);
  if (const auto found = digests_.find(name); found != digests_.end()) {
    return found->second;
  }
  std::ifstream file(config_.project / name, std::ios::binary);
  Sha256 digest;
  std::array<char, 65536> buffer{};
  while (file) {
    file.read(buffer.data(), buffer.size());
    digest.add({buffer.data(), static_cast<std::size_t>(file.gcount())});
    cancel.check();
  }
  if (!file.eof()) {
    return std::nullopt;
  }
  return digests_.emplace(name, digest.hex()).first->second;
}

Selection select_among(const config::Config& config, const std::set<std::string>& names,
                       const Cancel& cancel) {
  // rsync itself decides which names the user's patterns keep. It gets a tree of empty files with these
  // names.
  const TempFolder tree;
  Selection selection;
  for (const std::string& name : names) {
    const fs::path path = tree.path() / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (!name.ends_with('/')) {
      std::ofstream(path).flush();
    }
    if (is_recordable(name.substr(0, name.find_last_not_of('/') + 1)) && fs::exists(path, error)) {
      selection.excluded.insert(name);
    }
    cancel.check();
  }
  for (std::string& name : selected_names(config, tree.path(), cancel)) {
    selection.excluded.erase(name);
    if (names.contains(name)) {
      selection.selected.insert(std::move(name));
    }
  }
  return selection;
}

std::string sent_place(const config::Config& config, const config::Server& server,
                       const ssh::LoginFacts& login) {
  return login.user + "@" + login.host + ":" + std::to_string(login.port) + " " +
         config.project_path_on(server);
}

SentFiles::SentFiles(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login)
    : config_(config),
      folder_(config.local(".remote/sent")),
      file_(folder_ / server.name),
      place_(sent_place(config, server, login)) {}

std::vector<std::string> SentFiles::read() const {
  std::optional<std::string> content;
  try {
    content = read_beneath(folder_, file_.filename(), most_record);
  } catch (const Error&) {
    return {};
  }
  if (!content || !content->ends_with('\0')) {
    return {};
  }
  content->pop_back();
  std::vector<std::string> names = split(*content, '\0');
  if (names.empty() || names[0] != place_) {
    return {};
  }
  names.erase(names.begin());
  return std::ranges::all_of(names, is_recordable) ? names : std::vector<std::string>();
}

std::vector<std::string> SentFiles::gone_here(const Cancel& cancel) const {
  std::set<std::string> names;
  for (const std::string& name : read()) {
    if (!is_gone(config_.project / name)) {
      continue;
    }
    names.insert(name);
    for (std::size_t slash = name.rfind('/'); slash != std::string::npos && slash > 0;
         slash = name.rfind('/', slash - 1)) {
      if (!is_gone(config_.project / name.substr(0, slash)) ||
          !names.insert(name.substr(0, slash + 1)).second) {
        break;
      }
    }
  }
  // If a file was later replaced by a folder, the folder's files show that it is a folder now.
  std::erase_if(names, [&names](const std::string& name) { return names.contains(name + "/"); });
  if (names.empty()) {
    return {};
  }
  // A name that cannot be tested here stays on the server.
  const std::set<std::string> selected = select_among(config_, names, cancel).selected;
  return {selected.begin(), selected.end()};
}

void SentFiles::update(const std::vector<std::string>& sent,
                       const std::vector<std::string>& forgotten) const {
  if (sent.empty() && forgotten.empty()) {
    return;
  }
  make_folders(folder_);
  const FileLock lock(folder_ / ".lock");
  const std::vector<std::string> before = read();
  std::set<std::string> names(before.begin(), before.end());
  for (const std::string& name : forgotten) {
    names.erase(name);
  }
  std::ranges::copy_if(sent, std::inserter(names, names.end()), is_recordable);
  std::string content = place_ + '\0';
  for (const std::string& name : names) {
    content += name + '\0';
  }
  write_file_atomic(file_, content);
}

void SentFiles::forget(const config::Config& config, const std::string& server,
                       const std::vector<std::string>& names) {
  const fs::path folder = config.local(".remote/sent");
  if (names.empty() || !is_there(folder / server)) {
    return;
  }
  const FileLock lock(folder / ".lock");
  const auto content = read_beneath(folder, server, most_record);
  if (!content) {
    return;
  }
  const std::set<std::string> forgotten(names.begin(), names.end());
  std::vector<std::string> kept = split(*content, '\0');
  std::erase_if(kept, [&](const std::string& name) { return forgotten.contains(name); });
  write_file_atomic(folder / server, join(kept, std::string(1, '\0')));
}

}  // namespace remote::servers
