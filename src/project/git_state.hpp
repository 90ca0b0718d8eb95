#pragma once

#include <future>
#include <string>
#include <utility>

#include <remote/history.hpp>

#include "project/core.hpp"

namespace remote::project {

// A record with the state of the project in git, and the patch, "" if none is kept. Empty if git does not
// answer in time. Runs on a separate thread, so that connections can be made at the same time. The
// repository's settings are untrusted: none of them can start a program.
using GitState = std::future<std::pair<PastLaunch, std::string>>;
GitState ask_git(const Core& core);
// For code whose state is already known.
GitState known_git(PastLaunch record, std::string patch);

// The full hash of the commit, with the suffix of `git describe --dirty`: "0123…", or "0123…-dirty" if the
// code has changed since; "" if unknown. Does not consume `git`.
std::string commit_of(GitState& git);
// The variables with this commit as REMOTE_COMMIT, unless they already set it.
Env with_commit(Env env, GitState& git);

// As launch() in core.hpp, with this state of the code. `code_was_sent`: the code has just been sent to the
// servers.
LaunchResult launch(Core& core, const LaunchRequest& request, GitState git, bool code_was_sent);

}  // namespace remote::project
