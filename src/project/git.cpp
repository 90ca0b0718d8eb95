#include "project/git.hpp"

#include <algorithm>
#include <array>

#include <poll.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "project/excluded.hpp"

namespace remote::project {

using Clock = std::chrono::steady_clock;

Git::Git(std::filesystem::path folder, Cancel cancel, std::chrono::seconds patience)
    : folder_(std::move(folder)), cancel_(std::move(cancel)), until_(Clock::now() + patience) {}

std::optional<std::string> Git::ask(const std::vector<std::string>& words, std::size_t most, int also) const {
  SubprocessSpec spec;
  // A program that git itself has started has its repository in these.
  spec.argv = {"env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE"};
  spec.argv.insert(spec.argv.end(), variables_.begin(), variables_.end());
  spec.argv.insert(spec.argv.end(), {"git", "--no-pager"});
  for (const std::string& setting : settings_) {
    spec.argv.insert(spec.argv.end(), {"-c", setting});  // git before 2.31 takes none from the environment
  }
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.directory = folder_;
  spec.set_env = {{"GIT_OPTIONAL_LOCKS", "0"},
                  {"GIT_TERMINAL_PROMPT", "0"},
                  {"GIT_ALLOW_PROTOCOL", "none"},
                  {"GIT_NO_LAZY_FETCH", "1"}};
  spec.pipe_stdout = true;
  spec.pass_fds = {{nowhere_.get(), 2}};
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
    if (driver.empty()) {  // behind the last one
      continue;
    }
    if (driver.find('=') != std::string::npos) {  // -c would take it for another name
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

std::vector<std::string> of_project(std::vector<std::string> words) {
  words.insert(words.end(), {"--", ".", ":(exclude).remote"});
  return words;
}

namespace {

// How many files and folders the servers are sent that git neither has nor ignores.
int count_untracked(const Git& git) {
  std::vector<std::string> names =
      split(git.ask(of_project({"ls-files", "-z", "--others", "--exclude-standard", "--directory",
                                "--no-empty-directory"}))
                .value_or(""),
            '\0');
  std::erase(names, "");
  std::size_t left_out = 0;
  try {
    left_out = excluded(git.folder(), names, git.cancel()).size();
  } catch (const Error&) {  // then all of them count
  }
  return static_cast<int>(names.size() - left_out);
}

}  // namespace

std::pair<PastLaunch, std::string> look_at_git(Git& git, std::size_t most_patch) {
  PastLaunch record;
  if (!git.without_drivers()) {
    return {};
  }
  const auto listed = git.ask(of_project({"status", "--porcelain=v2", "--branch", "-z",
                                          "--untracked-files=normal", "--ignore-submodules=dirty"}),
                              Git::most_listed);
  constexpr std::string_view commit = "# branch.oid ";
  constexpr std::string_view branch = "# branch.head ";
  for (const std::string& line : split(listed.value_or(""), '\0')) {
    if (line.starts_with(commit) && line.size() > commit.size() && line[commit.size()] != '(') {
      record.commit = line.substr(commit.size());
    } else if (line.starts_with(branch) && line != "# branch.head (detached)") {
      record.branch = line.substr(branch.size());
    } else if (line.starts_with("? ")) {
      record.untracked = 1;
    } else if (line.starts_with("1 ") || line.starts_with("2 ") || line.starts_with("u ")) {
      record.changed = true;
    }
  }
  record.untracked = record.untracked > 0 ? count_untracked(git) : 0;
  record.clean = !record.commit.empty() && !record.changed && record.untracked == 0;
  if (!record.changed || record.commit.empty()) {
    return {record, ""};
  }
  // --submodule=short: the others start git in a submodule, which has settings of its own
  const auto patch =
      git.ask(of_project({"diff", "--binary", "--relative", "--no-color", "--no-ext-diff", "--no-textconv",
                          "-U3", "--submodule=short", "--ignore-submodules=dirty", "--src-prefix=a/",
                          "--dst-prefix=b/", "HEAD"}),
              most_patch);
  return {record, patch.value_or("")};
}

}  // namespace remote::project
