#include "project/git.hpp"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "project/excluded.hpp"

namespace remote::project {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

// Variables that select another repository or other settings, or change the meaning of arguments. They may be
// set by the user, or by git when it starts a program.
constexpr std::array foreign_variables{"GIT_DIR",
                                       "GIT_WORK_TREE",
                                       "GIT_INDEX_FILE",
                                       "GIT_COMMON_DIR",
                                       "GIT_OBJECT_DIRECTORY",
                                       "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                       "GIT_NAMESPACE",
                                       "GIT_PREFIX",
                                       "GIT_GRAFT_FILE",
                                       "GIT_SHALLOW_FILE",
                                       "GIT_REPLACE_REF_BASE",
                                       "GIT_CONFIG",
                                       "GIT_CONFIG_PARAMETERS",
                                       "GIT_CONFIG_COUNT",
                                       "GIT_EXTERNAL_DIFF",
                                       "GIT_DIFF_OPTS",
                                       "GIT_ATTR_SOURCE",
                                       "GIT_LITERAL_PATHSPECS",
                                       "GIT_GLOB_PATHSPECS",
                                       "GIT_NOGLOB_PATHSPECS",
                                       "GIT_ICASE_PATHSPECS"};

std::optional<struct stat> look_at(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? std::optional(info) : std::nullopt;
}

bool is_own_file(const std::optional<struct stat>& info) {
  return info && is_own(info->st_uid);
}

// The first line of a small file; "" if it cannot be read.
std::string first_line(const fs::path& file) {
  constexpr off_t longest = 65536;
  const auto info = look_at(file);
  if (!info || !S_ISREG(info->st_mode) || info->st_size > longest) {
    return "";
  }
  const std::string text = read_file_if_there(file).value_or("");
  return text.substr(0, text.find_first_of("\r\n"));
}

// The value of core.worktree in a repository's own file, ignoring included files.
std::string worktree_setting(const fs::path& repository) {
  SubprocessSpec spec;
  spec.argv = {"git", "config", "--file", (repository / "config").string(), "--get", "core.worktree"};
  const ExecResult result = run_subprocess(spec);
  return result.status.success() ? result.out.substr(0, result.out.find('\n')) : "";
}

// The folder that the file .git points to, if that folder points back to `top`: a linked worktree, or a
// submodule.
fs::path named_by_file(const fs::path& top) {
  constexpr std::string_view key = "gitdir: ";
  const std::string line = first_line(top / ".git");
  const fs::path folder = line.starts_with(key) ? resolved(top / line.substr(key.size())) : fs::path();
  if (folder.empty() || !is_folder(folder)) {
    return {};
  }
  if (const std::string back = first_line(folder / "gitdir"); !back.empty()) {
    const fs::path common = folder.parent_path().parent_path();
    const bool is_worktree = folder.parent_path().filename() == "worktrees" &&
                             resolved(folder / first_line(folder / "commondir")) == common;
    return is_worktree && resolved(folder / back) == top / ".git" ? folder : fs::path();
  }
  const std::string back = worktree_setting(folder);
  return !back.empty() && !look_at(folder / "commondir") && resolved(folder / back) == top ? folder
                                                                                           : fs::path();
}

// Whether the repository has its own objects, without links to those of another repository.
bool has_own_objects(const fs::path& repository) {
  const fs::path objects = repository / "objects";
  for (const fs::path& folder : {objects, objects / "pack", objects / "info"}) {
    if (is_link(folder) || std::ranges::any_of(entries_of(folder), is_link)) {
      return false;
    }
  }
  // Used by a clone with --shared or --reference.
  const auto alternates = look_at(objects / "info" / "alternates");
  return !alternates || (S_ISREG(alternates->st_mode) && alternates->st_size == 0);
}

bool has_own_files(const fs::path& repository) {
  constexpr std::array names{"HEAD", "index", "config", "config.worktree", "packed-refs", "refs", "info"};
  return std::ranges::none_of(names, [&](const char* name) { return is_link(repository / name); });
}

}  // namespace

std::optional<GitRepository> find_repository(const fs::path& folder) {
  fs::path top = resolved(folder);
  while (!top.empty() && !look_at(top / ".git")) {
    top = top == top.parent_path() ? fs::path() : top.parent_path();
  }
  const auto dot_git = look_at(top / ".git");
  if (top.empty() || !is_own_file(dot_git) || !is_own_file(look_at(top))) {
    return std::nullopt;
  }
  fs::path repository;
  fs::path common;  // contains the objects
  if (S_ISDIR(dot_git->st_mode) && !look_at(top / ".git" / "commondir")) {
    common = repository = top / ".git";
  } else if (S_ISREG(dot_git->st_mode)) {
    repository = named_by_file(top);
    common = look_at(repository / "commondir") ? repository.parent_path().parent_path() : repository;
  }
  if (repository.empty() || !is_own_file(look_at(repository)) || !is_own_file(look_at(common)) ||
      !has_own_files(repository) || !has_own_files(common) || !has_own_objects(common)) {
    return std::nullopt;
  }
  return GitRepository{top, repository};
}

Git::Git(fs::path folder, Cancel cancel, Moment until, std::optional<GitRepository> repository)
    : folder_(std::move(folder)),
      cancel_(std::move(cancel)),
      until_(until),
      repository_(std::move(repository)) {
  if (repository_) {  // so that git does not search for one, and core.worktree has no effect
    set("GIT_DIR", repository_->folder.string());
    set("GIT_WORK_TREE", repository_->top.string());
  }
}

Git::Git(const fs::path& folder, Cancel cancel, std::chrono::seconds patience)
    : Git(folder, std::move(cancel), Clock::now() + patience, find_repository(folder)) {}

std::optional<std::string> Git::ask(const std::vector<std::string>& words, std::size_t most, int also,
                                    int input) const {
  if (!repository_) {
    return std::nullopt;
  }
  SubprocessSpec spec;
  spec.argv = {"env"};
  for (const char* name : foreign_variables) {
    spec.argv.insert(spec.argv.end(), {"-u", name});
  }
  spec.argv.insert(spec.argv.end(), variables_.begin(), variables_.end());
  spec.argv.insert(spec.argv.end(), {"git", "--no-pager"});
  for (const std::string& setting : settings_) {
    spec.argv.insert(spec.argv.end(), {"-c", setting});  // git before 2.31 cannot use the environment
  }
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.directory = folder_;
  spec.set_env = {{"GIT_OPTIONAL_LOCKS", "0"},
                  {"GIT_TERMINAL_PROMPT", "0"},
                  {"GIT_ALLOW_PROTOCOL", "none"},
                  {"GIT_NO_LAZY_FETCH", "1"},
                  {"GIT_NO_REPLACE_OBJECTS", "1"}};
  spec.pipe_stdout = true;
  spec.pass_fds = {{nowhere_.get(), 2}};
  if (input >= 0) {
    spec.pass_fds.emplace_back(input, 0);
  }
  spec.new_session = true;
  Subprocess git(spec);
  std::string out;
  std::array<char, 65536> block{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now()).count();
    std::array<pollfd, 2> fds{{{git.stdout_fd.get(), POLLIN, 0}, {cancel_.fd(), POLLIN, 0}}};
    if (left <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left)) < 0 || cancel_.cancelled()) {
      return std::nullopt;
    }
    const ssize_t count = fds[0].revents == 0 ? -1 : ::read(git.stdout_fd.get(), block.data(), block.size());
    if (fds[0].revents != 0 && count <= 0) {
      break;
    }
    out.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (out.size() > most) {
      return std::nullopt;
    }
  }
  const ExitStatus status = git.wait();
  return status.success() || (also != 0 && status.code() == also) ? std::optional(out) : std::nullopt;
}

bool Git::without_drivers() {
  const auto found =
      ask({"config", "-z", "--name-only", "--get-regexp", R"(^(filter|hook)\.)"}, most_listed, 1);
  for (const std::string& key : split(found.value_or(""), '\0')) {
    const std::string driver = key.substr(0, key.rfind('.'));
    if (driver.empty()) {  // the empty text after the last separator
      continue;
    }
    if (driver.find('=') != std::string::npos) {  // -c would interpret it as another name
      return false;
    }
    if (driver.starts_with("filter.")) {
      filters_.insert(driver.substr(7));
    }
    for (const char* off : {".clean=", ".smudge=", ".process=", ".required=false", ".enabled=false"}) {
      settings_.insert(driver + off);
    }
  }
  return found.has_value();
}

bool Git::check_marked_files() {
  const auto listed = ask(of_project({"ls-files", "-v", "-z"}), most_files);
  std::string unchecked;  // names, each with a NUL at its end
  std::string skipped;
  for (const std::string& line : split(listed.value_or(""), '\0')) {
    const char mark = line.size() > 2 ? line[0] : 'H';  // "H NAME"
    const bool is_skipped = mark == 'S' || mark == 's';
    const bool is_unchecked = mark >= 'a' && mark <= 'z';
    if ((!is_skipped && !is_unchecked) || (is_skipped && !look_at(folder_ / line.substr(2)))) {
      continue;
    }
    (is_skipped ? skipped : unchecked).append(line, 2).push_back('\0');
    if (is_skipped && is_unchecked) {
      unchecked.append(line, 2).push_back('\0');
    }
  }
  if (!listed || (unchecked.empty() && skipped.empty())) {
    return listed.has_value();
  }
  index_ = std::make_unique<TempFolder>("remote-index-");
  const fs::path from = repository_.value().folder / "index";
  const fs::path to = index_->path() / "index";
  std::error_code error;
  const auto time = fs::last_write_time(from, error);  // git compares it with the times of the files
  if (error || !fs::copy_file(from, to, error) || (fs::last_write_time(to, time, error), error)) {
    throw Error("cannot copy git's index", error.message(), "does the temporary folder have enough space?");
  }
  set("GIT_INDEX_FILE", to.string());
  const auto unmark = [&](const char* option, const std::string& names) {
    if (names.empty()) {
      return true;
    }
    const fs::path list = index_->path() / "names";
    write_file_atomic(list, names);
    const UniqueFd input = open_regular(list, O_RDONLY);
    return ask({"update-index", option, "-z", "--stdin"}, most_listed, 0, input.get()).has_value();
  };
  return unmark("--no-assume-unchanged", unchecked) && unmark("--no-skip-worktree", skipped);
}

std::vector<std::string> of_project(std::vector<std::string> words) {
  words.insert(words.end(), {"--", ".", ":(exclude).remote"});
  return words;
}

namespace {

// Number of files and folders at or below `folder` (a submodule of `project`, or the project) that are
// neither tracked nor ignored by git and that are sent to the servers.
std::size_t count_untracked(const Git& git, const fs::path& project, const std::string& folder) {
  std::vector<std::string> names =
      split(git.ask(of_project({"ls-files", "-z", "--others", "--exclude-standard", "--directory",
                                "--no-empty-directory"}))
                .value_or(""),
            '\0');
  std::erase(names, "");
  for (std::string& name : names) {
    name.insert(0, folder);
  }
  std::size_t left_out = 0;
  try {
    left_out = excluded(project, names, git.cancel()).size();
  } catch (const Error&) {  // then count all of them
  }
  return names.size() - left_out;
}

struct Status {
  std::string commit;
  std::string branch;
  bool changed = false;
  bool untracked = false;
};

// nullopt: git failed or timed out.
std::optional<Status> ask_status(const Git& git) {
  const auto listed = git.ask(of_project({"status", "--porcelain=v2", "--branch", "-z",
                                          "--untracked-files=normal", "--ignore-submodules=dirty"}));
  if (!listed) {
    return std::nullopt;
  }
  constexpr std::string_view commit = "# branch.oid ";
  constexpr std::string_view branch = "# branch.head ";
  Status status;
  for (const std::string& line : split(*listed, '\0')) {
    if (line.starts_with(commit) && line.size() > commit.size() && line[commit.size()] != '(') {
      status.commit = line.substr(commit.size());
    } else if (line.starts_with(branch) && line != "# branch.head (detached)") {
      status.branch = line.substr(branch.size());
    } else if (line.starts_with("? ")) {
      status.untracked = true;
    } else if (line.starts_with("1 ") || line.starts_with("2 ") || line.starts_with("u ")) {
      status.changed = true;
    }
  }
  return status;
}

constexpr int deepest_submodule = 8;

bool is_checked_out(const fs::path& folder, const std::string& submodule) {
  return has_folder(folder, submodule) && !entries_of(folder / submodule).empty();
}

// Whether this is the repository of the folder itself, and not one above it.
bool is_of_folder(const Git& git) {
  return git.repository() && git.repository()->top == resolved(git.folder());
}

// Returns false if git does not list all names.
bool add_tracked(const Git& git, const std::string& folder, int depth, std::set<std::string>& names) {
  const auto listed = git.ask(of_project({"ls-files", "-z"}), Git::most_files);
  if (!listed) {
    return false;
  }
  for (const std::string& name : split(*listed, '\0')) {
    names.insert(folder + name);
  }
  for (const std::string& line : listed_submodules(git)) {
    const std::string name = name_of_submodule(line);
    if (depth >= deepest_submodule || !is_checked_out(git.folder(), name)) {
      continue;
    }
    const Git inner = git.in(git.folder() / name);
    if (is_of_folder(inner) && !add_tracked(inner, folder + name + "/", depth + 1, names)) {
      return false;
    }
  }
  return true;
}

// Adds submodules with uncommitted changes, including nested ones. Git itself would run programs named in
// their settings.
void add_changed(const Git& git, const fs::path& project, const std::string& folder, int depth,
                 std::vector<std::string>& changed) {
  for (const std::string& line : listed_submodules(git)) {
    const std::string name = name_of_submodule(line);
    const std::string whole = folder + name + "/";
    const fs::path path = git.folder() / name;
    if (!is_checked_out(git.folder(), name)) {
      continue;
    }
    git.cancel().check();
    Git inner = git.in(path);
    const bool known = is_of_folder(inner) && depth < deepest_submodule && inner.without_drivers() &&
                       inner.check_marked_files();
    const auto status = known ? ask_status(inner) : std::nullopt;
    if (!status || status->changed || (status->untracked && count_untracked(inner, project, whole) > 0)) {
      changed.push_back(whole);
    }
    if (status) {
      add_changed(inner, project, whole, depth + 1, changed);
    }
  }
}

}  // namespace

std::vector<std::string> listed_submodules(const Git& git) {
  std::vector<std::string> lines = split(git.ask(of_project({"ls-files", "-s", "-z"})).value_or(""), '\0');
  std::erase_if(lines, [](const std::string& line) {
    return !line.starts_with("160000 ") || line.find('\t') == std::string::npos;
  });
  return lines;
}

std::string name_of_submodule(const std::string& line) {
  return line.substr(line.find('\t') + 1);
}

bool has_folder(const fs::path& project, const std::string& submodule) {
  return !submodule.empty() && static_cast<bool>(open_parent_beneath(project, fs::path(submodule) / "any"));
}

std::optional<std::set<std::string>> list_tracked(const Git& git) {
  std::set<std::string> names;
  return add_tracked(git, "", 0, names) ? std::optional(std::move(names)) : std::nullopt;
}

std::pair<PastLaunch, std::string> look_at_git(Git& git, std::size_t most_patch) {
  PastLaunch record;
  if (!git.without_drivers() || !git.check_marked_files()) {
    return {};
  }
  const Status status = ask_status(git).value_or(Status());
  record.commit = status.commit;
  record.branch = status.branch;
  record.changed = status.changed;
  record.untracked = status.untracked ? static_cast<int>(count_untracked(git, git.folder(), "")) : 0;
  add_changed(git, git.folder(), "", 0, record.changed_in);
  record.clean =
      !record.commit.empty() && !record.changed && record.untracked == 0 && record.changed_in.empty();
  if (!record.changed || record.commit.empty()) {
    return {record, ""};
  }
  // --submodule=short: the other formats run git in a submodule, which has its own settings
  const auto patch =
      git.ask(of_project({"diff", "--binary", "--relative", "--no-color", "--no-ext-diff", "--no-textconv",
                          "-U3", "--submodule=short", "--ignore-submodules=dirty", "--src-prefix=a/",
                          "--dst-prefix=b/", "HEAD"}),
              most_patch);
  return {record, patch.value_or("")};
}

}  // namespace remote::project
