#include "project/git_state.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::project {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{5};    // a launch does not wait longer for what it remembers
constexpr std::size_t most_patch = 1U << 20U;  // 1 MiB
constexpr std::size_t most_listed = 16U << 20U;

// git without the programs that a repository's settings may name: hooks, a monitor of files, filters, what
// fetches missing objects. Other programs are those of commands that are not used here, and of options below.
class Git {
 public:
  explicit Git(const Core& core) : core_(core) {}

  // What it prints; nullopt where it fails, prints more, or takes too long. `also`: an exit code that is
  // well.
  std::optional<std::string> ask(const std::vector<std::string>& words, std::size_t most,
                                 int also = 0) const {
    SubprocessSpec spec;
    // A program that git itself has started has its repository in these.
    spec.argv = {"env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "git", "--no-pager"};
    for (const std::string& setting : settings_) {
      spec.argv.insert(spec.argv.end(), {"-c", setting});  // git before 2.31 takes none from the environment
    }
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.directory = core_.config.project;
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
      std::array<pollfd, 2> fds{{{git.stdout_fd.get(), POLLIN, 0}, {core_.cancel().fd(), POLLIN, 0}}};
      if (left <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left)) < 0 ||
          core_.cancel().cancelled()) {
        return std::nullopt;
      }
      const ssize_t count =
          fds[0].revents == 0 ? -1 : ::read(git.stdout_fd.get(), block.data(), block.size());
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

  // Programs through which files pass before they are compared, and hooks of newer versions. Also the user's
  // own: they may ask the repository's settings for programs, as git-lfs does.
  bool without_drivers() {
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
      for (const char* off : {".clean=", ".smudge=", ".process=", ".required=false", ".enabled=false"}) {
        settings_.insert(driver + off);
      }
    }
    return found.has_value();
  }

 private:
  const Core& core_;
  const Clock::time_point until_ = Clock::now() + patience;
  const UniqueFd nowhere_ = open_regular("/dev/null", O_WRONLY);
  std::set<std::string> settings_{"core.fsmonitor=false", "core.hooksPath=/dev/null"};
};

// Without .remote: it is not the project's code, and a configs.yaml may have a password.
std::vector<std::string> of_project(std::vector<std::string> words) {
  words.insert(words.end(), {"--", ".", ":(exclude).remote"});
  return words;
}

std::pair<PastLaunch, std::string> look(const Core& core) {
  Git git(core);
  PastLaunch record;
  if (!git.without_drivers()) {
    return {};
  }
  const auto listed = git.ask(of_project({"status", "--porcelain=v2", "--branch", "-z",
                                          "--untracked-files=normal", "--ignore-submodules=dirty"}),
                              most_listed);
  bool changed = false;
  constexpr std::string_view commit = "# branch.oid ";
  constexpr std::string_view branch = "# branch.head ";
  for (const std::string& line : split(listed.value_or(""), '\0')) {
    if (line.starts_with(commit) && line.size() > commit.size() && line[commit.size()] != '(') {
      record.commit = line.substr(commit.size());
    } else if (line.starts_with(branch) && line != "# branch.head (detached)") {
      record.branch = line.substr(branch.size());
    } else if (line.starts_with("? ")) {
      ++record.untracked;
    } else if (line.starts_with("1 ") || line.starts_with("2 ") || line.starts_with("u ")) {
      changed = true;
    }
  }
  record.clean = !record.commit.empty() && !changed && record.untracked == 0;
  if (!changed || record.commit.empty()) {
    return {record, ""};
  }
  // --submodule=short: the others start git in a submodule, which has settings of its own
  const auto patch = git.ask(of_project({"diff", "--binary", "--relative", "--no-color", "--no-ext-diff",
                                         "--no-textconv", "--submodule=short", "--ignore-submodules=dirty",
                                         "--src-prefix=a/", "--dst-prefix=b/", "HEAD"}),
                             most_patch);
  return {record, patch.value_or("")};
}

}  // namespace

GitState ask_git(const Core& core) {
  return std::async(std::launch::async, [&core] {
    try {
      return look(core);
    } catch (const Error&) {  // there is no git
      return std::pair<PastLaunch, std::string>();
    }
  });
}

}  // namespace remote::project
