#pragma once

#include <future>
#include <string>
#include <utility>

#include <remote/history.hpp>

#include "project/core.hpp"

namespace remote::project {

// A record with what git says of the project, and the text of its patch, "" where none is kept. Nothing where
// git does not tell in time. On a thread of its own, so that connections can be made meanwhile. The
// repository's own settings are foreign: none of them runs a program.
using GitState = std::future<std::pair<PastLaunch, std::string>>;
GitState ask_git(const Core& core);
// The same of code that is known already.
GitState known_git(PastLaunch record, std::string patch);

// The full hash of the commit, with the suffix of `git describe --dirty`: "0123…", or "0123…-dirty" if the
// code has changed since; "" if it is not known. `git` stays valid, or invalid.
std::string commit_of(GitState& git);
// The variables with this commit as REMOTE_COMMIT, which they may set otherwise.
Env with_commit(Env env, GitState& git);

// launch() of core.hpp, with code that is known in this way. `code_was_sent`: the servers have just got it.
LaunchResult launch(Core& core, const LaunchRequest& request, GitState git, bool code_was_sent);

}  // namespace remote::project
