#include "servers/sent_state.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/project_tree.hpp"
#include "wire/text.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

constexpr const char* sent_folder = ".remote/sent";
constexpr const char* pulled_file = ".pulled";
constexpr std::string_view state_prefix = ".state.";
constexpr std::string_view tree_prefix = ".tree.";
constexpr std::string_view gone_prefix = ".gone.";
constexpr std::int64_t ns_per_second = 1'000'000'000;

#ifdef __APPLE__
timespec modified(const struct stat& info) {
  return info.st_mtimespec;
}
#else
timespec modified(const struct stat& info) {
  return info.st_mtim;
}
#endif

std::int64_t time_of(const struct stat& info) {
  const timespec time = modified(info);
  return std::int64_t{time.tv_sec} * ns_per_second + time.tv_nsec;
}

// Reads a file in .remote/sent, unless it is a link.
std::optional<std::string> read_own(const fs::path& file) {
  constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 30U;  // a few million files
  return read_beneath(file.parent_path(), file.filename(), most_bytes);
}

// The NUL-terminated texts in a file; empty if it is missing or damaged.
std::vector<std::string> read_texts(const fs::path& file) {
  auto content = read_own(file);
  if (!content || !content->ends_with('\0')) {
    return {};
  }
  content->pop_back();
  return split(*content, '\0');
}

void write_if_other(const fs::path& file, const std::string& content) {
  if (read_own(file) != content) {
    write_file_atomic(file, content);
  }
}

fs::path tree_file(const config::Config& config, const std::string& digest) {
  return config.local(sent_folder) / (std::string(tree_prefix) + digest);
}

fs::path gone_file(const config::Config& config, const std::string& server) {
  return config.local(sent_folder) / (std::string(gone_prefix) + server);
}

// Empty if it is missing or damaged; then everything counts as changed.
ProjectState read_tree(const config::Config& config, const std::string& digest) {
  const auto text = read_own(tree_file(config, digest));
  return (text ? ProjectState::parse(*text) : std::nullopt).value_or(ProjectState());
}

// Whether a line of the file announces a private key (PEM, OpenSSH, PuTTY).
bool is_private_key(const fs::path& file, std::uint64_t size) {
  constexpr std::uint64_t largest = 65536;
  if (size < 32 || size > largest) {
    return false;
  }
  std::string text;
  try {
    text = read_file_if_there(file).value_or("");
  } catch (const Error&) {
    return false;  // rsync cannot read it either
  }
  if (text.starts_with("PuTTY-User-Key-File-") || text.starts_with("SSH PRIVATE KEY FILE FORMAT")) {
    return true;
  }
  for (std::size_t at = text.find("-----BEGIN "); at != std::string::npos;
       at = text.find("-----BEGIN ", at + 1)) {
    const std::string_view line =
        std::string_view(text).substr(at, std::min(text.find_first_of("\r\n", at), text.size()) - at);
    if ((at == 0 || text[at - 1] == '\n' || text[at - 1] == '\r') &&
        trim(line).ends_with("PRIVATE KEY-----")) {
      return true;
    }
  }
  return false;
}

bool is_lfs_pointer(const fs::path& project, const std::string& name, std::uint64_t size) {
  constexpr std::uint64_t smallest = 100;
  constexpr std::uint64_t largest = 1023;
  if (size < smallest || size > largest) {
    return false;
  }
  try {
    return read_beneath(project, name, largest).value_or("").starts_with("version https://git-lfs");
  } catch (const Error&) {
    return false;  // not a file of the project
  }
}

// The files that job-pull copied here, in their state at that time.
ProjectState read_pulled(const config::Config& config) {
  const auto text = read_own(config.local(sent_folder) / pulled_file);
  return (text ? ProjectState::parse(*text) : std::nullopt).value_or(ProjectState());
}

}  // namespace

std::int64_t FileStamp::seconds() const {
  const std::int64_t whole = time_ns / ns_per_second;
  return time_ns % ns_per_second < 0 ? whole - 1 : whole;  // for times before 1970
}

std::string FileStamp::line() const {
  return std::to_string(size) + ' ' + std::to_string(seconds()) + ' ' + name + '\n';
}

ProjectState ProjectState::look(const config::Config& config, const std::vector<std::string>& leave,
                                const Cancel& cancel) {
  ProjectState state;
  std::set<std::pair<dev_t, ino_t>> keys;
  for (const config::Server& server : config.servers) {
    struct stat info {};
    if (server.private_key && ::stat(server.private_key->c_str(), &info) == 0) {
      keys.emplace(info.st_dev, info.st_ino);
    }
  }
  const ProjectState pulled = read_pulled(config);
  for (std::string& name : selected_names(config, config.project, cancel, leave)) {
    if (name.ends_with('/') || name.find("\\#") != std::string::npos) {
      continue;  // a folder, or a name that rsync prints differently
    }
    struct stat info {};
    if (::stat((config.project / name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      continue;
    }
    cancel.check();
    FileStamp stamp{name, static_cast<std::uint64_t>(info.st_size), time_of(info)};
    if (keys.contains({info.st_dev, info.st_ino}) ||
        is_private_key(config.project / name, static_cast<std::uint64_t>(info.st_size))) {
      state.keys_.push_back(std::move(name));
    } else if (const auto at = std::ranges::lower_bound(pulled.files_, name, {}, &FileStamp::name);
               at != pulled.files_.end() && *at == stamp) {
      state.pulled_.push_back(std::move(name));
    } else {
      if (is_lfs_pointer(config.project, name, stamp.size)) {
        state.pointers_.push_back(name);
      }
      state.files_.push_back(std::move(stamp));
    }
  }
  std::ranges::sort(state.files_, {}, &FileStamp::name);
  std::ranges::sort(state.pointers_);
  return state;
}

void ProjectState::add_pulled(const config::Config& config, const std::vector<std::string>& names) {
  make_folders(config.local(sent_folder));
  const FileLock lock(config.local(sent_folder) / ".lock");
  std::map<std::string, FileStamp> all;
  for (FileStamp& file : read_pulled(config).files_) {
    all[file.name] = std::move(file);
  }
  for (const std::string& name : names) {
    struct stat info {};
    if (::lstat((config.project / name).c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      all[name] = {name, static_cast<std::uint64_t>(info.st_size), time_of(info)};
    }
  }
  ProjectState state;
  for (auto& [name, file] : all) {
    if (is_there(config.project / name)) {
      state.files_.push_back(std::move(file));
    }
  }
  write_file_atomic(config.local(sent_folder) / pulled_file, state.text());
}

// Each file is written as its size, its time and its name, terminated by NUL.
std::string ProjectState::text() const {
  std::string text;
  for (const FileStamp& file : files_) {
    text += std::to_string(file.size) + ' ' + std::to_string(file.time_ns) + ' ' + file.name + '\0';
  }
  return text;
}

std::string ProjectState::listed() const {
  std::string text;
  for (const FileStamp& file : files_) {
    text += file.line();
  }
  return text;
}

const FileStamp* ProjectState::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(files_, name, {}, &FileStamp::name);
  return found != files_.end() && found->name == name ? &*found : nullptr;
}

ProjectState ProjectState::without(const std::vector<std::string>& names) const {
  const std::set<std::string> left_out(names.begin(), names.end());
  ProjectState rest = *this;
  std::erase_if(rest.files_, [&](const FileStamp& file) { return left_out.contains(file.name); });
  return rest;
}

std::optional<ProjectState> ProjectState::parse(std::string_view text) {
  ProjectState state;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    const std::size_t first = text.find(' ');
    const std::size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
    if (end == std::string_view::npos || second == std::string_view::npos || second > end) {
      return std::nullopt;
    }
    const auto size = parse_number<std::uint64_t>(text.substr(0, first));
    const auto time = parse_number<std::int64_t>(text.substr(first + 1, second - first - 1));
    if (!size || !time || second + 1 == end) {
      return std::nullopt;
    }
    state.files_.push_back({std::string(text.substr(second + 1, end - second - 1)), *size, *time});
    text.remove_prefix(end + 1);
  }
  return std::ranges::is_sorted(state.files_, {}, &FileStamp::name) ? std::optional(std::move(state))
                                                                    : std::nullopt;
}

std::vector<std::string> ProjectState::changed_since(const ProjectState& then) const {
  std::vector<std::string> names;
  auto old = then.files_.begin();
  for (const FileStamp& file : files_) {
    while (old != then.files_.end() && old->name < file.name) {
      ++old;
    }
    if (old == then.files_.end() || *old != file) {
      names.push_back(file.name);
    }
  }
  return names;
}

std::vector<std::string> ProjectState::differing_from(const ProjectState& then) const {
  std::vector<std::string> names = changed_since(then);
  for (const FileStamp& file : then.files_) {
    if (!std::ranges::binary_search(files_, file.name, {}, &FileStamp::name)) {
      names.push_back(file.name);
    }
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> ProjectState::hidden_changes_since(const ProjectState& then) const {
  std::vector<std::string> names;
  for (const FileStamp& file : files_) {
    const FileStamp* old = then.find(file.name);
    if (old != nullptr && old->size == file.size && old->time_ns != file.time_ns &&
        old->seconds() == file.seconds()) {
      names.push_back(file.name);
    }
  }
  return names;
}

std::vector<std::string> ProjectState::newer_than(std::int64_t time_ns) const {
  std::vector<std::string> names;
  for (const FileStamp& file : files_) {
    if (file.time_ns > time_ns) {
      names.push_back(file.name);
    }
  }
  return names;
}

SentState::SentState(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login)
    : config_(config),
      folder_(config.local(sent_folder)),
      server_(server.name),
      place_(sent_place(config, server, login)) {}

void SentState::remember(const ProjectState& state, const std::vector<std::string>& others) const {
  const std::string content = state.text();
  const std::string digest = sha256_hex(content);
  make_folders(folder_);
  const FileLock lock(folder_ / ".lock");
  if (const fs::path tree = folder_ / (std::string(tree_prefix) + digest); !is_there(tree)) {
    write_file_atomic(tree, content);
  }
  write_if_other(folder_ / (std::string(state_prefix) + server_), place_ + '\0' + digest + '\0');
  set_gone(false);
  for (const std::string& other : others) {
    const fs::path file = folder_ / (std::string(state_prefix) + other);
    if (const std::vector<std::string> texts = read_texts(file); texts.size() == 2) {
      write_if_other(file, texts[0] + '\0' + digest + '\0');
      remove_file(gone_file(config_, other));
    }
  }
}

SentState::Mark SentState::mark() const {
  const std::vector<std::string> texts = read_texts(folder_ / (std::string(state_prefix) + server_));
  if (texts.size() == 2 && texts[0] == place_ && wire::is_digest(texts[1]) &&
      is_there(folder_ / (std::string(tree_prefix) + texts[1]))) {
    return {.digest = texts[1]};
  }
  // Only data sent to exactly this place counts.
  const fs::path record = folder_ / server_;
  const std::vector<std::string> names = read_texts(record);
  struct stat info {};
  if (!names.empty() && names[0] == place_ && ::stat(record.c_str(), &info) == 0) {
    return {.time_ns = time_of(info)};
  }
  return {};
}

ProjectState SentState::files() const {
  const Mark known = mark();
  return known.digest.empty() ? ProjectState() : read_tree(config_, known.digest);
}

void SentState::set_gone(bool gone) const {
  if (const fs::path file = gone_file(config_, server_); gone) {
    write_file_atomic(file, "");
  } else {
    remove_file(file);
  }
}

bool is_known_as_gone(const config::Config& config, const std::string& server) {
  return is_there(gone_file(config, server));
}

ProjectState last_sent(const config::Config& config, const std::string& server) {
  const std::vector<std::string> texts =
      read_texts(config.local(sent_folder) / (std::string(state_prefix) + server));
  return texts.size() == 2 && wire::is_digest(texts[1]) ? read_tree(config, texts[1]) : ProjectState();
}

std::string sent_text(const config::Config& config, const std::string& digest) {
  if (!wire::is_digest(digest)) {
    return "";
  }
  const auto text = read_own(tree_file(config, digest));
  return text && sha256_hex(*text) == digest ? *text : "";
}

void keep_sent(const config::Config& config, const std::string& digest, const fs::path& folder) {
  constexpr std::uintmax_t most = 1U << 20U;  // about 20,000 files
  std::error_code ignored;
  if (wire::is_digest(digest) && fs::file_size(tree_file(config, digest), ignored) <= most) {
    fs::create_hard_link(tree_file(config, digest), folder / ("sent." + digest), ignored);
  }
}

std::vector<std::string> changed_since(const config::Config& config, const SentState::Mark& mark,
                                       const ProjectState& now) {
  return mark.digest.empty() ? now.newer_than(mark.time_ns)
                             : now.changed_since(read_tree(config, mark.digest));
}

bool rsync_would_miss(const config::Config& config, const SentState::Mark& mark, const ProjectState& now) {
  return !mark.digest.empty() && !now.hidden_changes_since(read_tree(config, mark.digest)).empty();
}

void remove_old_trees(const config::Config& config) {
  const fs::path folder = config.local(sent_folder);
  if (!is_folder(folder)) {
    return;
  }
  const FileLock lock(folder / ".lock");
  std::set<std::string> named;
  std::vector<fs::path> trees;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(state_prefix)) {
      for (const std::string& text : read_texts(entry)) {
        named.insert(text);
      }
    } else if (name.starts_with(tree_prefix)) {
      trees.push_back(entry);
    }
  }
  for (const fs::path& tree : trees) {
    std::error_code ignored;
    const bool kept = fs::hard_link_count(tree, ignored) > 1 && !ignored;  // linked by keep_sent()
    if (!kept && !named.contains(tree.filename().string().substr(tree_prefix.size()))) {
      fs::remove(tree, ignored);
    }
  }
}

}  // namespace remote::servers
