#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

// The outcome of a launch as text.

namespace remote::cli {

// The probable reasons why a server no longer answers.
inline constexpr std::string_view why_silent = "it may have been shut down, or taken back by its provider";

// For a launch that did not succeed: "rank 2 on node-2 failed first (exit 3, 2026-11-21 14:03:11 UTC+1, 0.2 s
// before the next)".
std::string verdict_headline(const Verdict& verdict);
// "attempt 1: rank 1 on node-2 failed (exit 3) after 12 s"
std::string attempt_text(const Attempt& attempt);
// Why it did not restart although restarts were left; "" if the headline says so, or for a launch without
// restarts.
std::string no_restart_text(const Verdict& verdict);
// What to try if the first failure's output shows a known problem; otherwise "".
std::string verdict_hint(const Verdict& verdict, bool has_one_rank_each = false);
// The number of processes that these jobs left running, and the command that kills them; "" if there are
// none.
std::string processes_left_note(const std::vector<Job>& jobs);
// Caveats about the success of these jobs: processes that are still running, an exit status that is only that
// of the last program in a pipe, and ranks that were trainings of their own. `launcher`: see
// find_own_launcher().
std::vector<std::string> success_notes(const std::vector<Job>& jobs, const std::string& launcher = "");
// "3 others were ended after it, 1 succeeded": the outcome of all ranks except the first that failed; "" if
// there are none.
std::string aftermath(const Verdict& verdict);
// Shows on stderr the errors while following jobs and, for a launch, the verdict: one line if it succeeded;
// otherwise the rank that failed first, its last lines of output unless they were just shown, and the outcome
// of the others.
void show_end(Context& context, const FollowResult& result, bool shown = false);

}  // namespace remote::cli
