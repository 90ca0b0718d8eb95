#include "project/git_state.hpp"

#include "project/git.hpp"

namespace remote::project {
namespace {

constexpr std::chrono::seconds launch_patience{5};  // limit for what only the record of a launch needs
constexpr std::size_t longest_patch = 1U << 20U;    // 1 MiB

}  // namespace

GitState ask_git(const Core& core) {
  return std::async(std::launch::async, [&core] {
    try {
      Git git(core.config.project, core.cancel(), launch_patience);
      return look_at_git(git, longest_patch);
    } catch (const Error&) {  // git is not installed
      return std::pair<PastLaunch, std::string>();
    }
  });
}

GitState known_git(PastLaunch record, std::string patch) {
  std::promise<std::pair<PastLaunch, std::string>> known;
  known.set_value({std::move(record), std::move(patch)});
  return known.get_future();
}

std::string commit_of(GitState& git) {
  if (!git.valid()) {
    return "";
  }
  auto [record, patch] = git.get();
  std::string commit = record.commit.empty() || record.clean ? record.commit : record.commit + "-dirty";
  git = known_git(std::move(record), std::move(patch));
  return commit;
}

Env with_commit(Env env, GitState& git) {
  if (const std::string commit = commit_of(git); !commit.empty()) {
    env.insert(env.begin(), {"REMOTE_COMMIT", commit});
  }
  return env;
}

}  // namespace remote::project
