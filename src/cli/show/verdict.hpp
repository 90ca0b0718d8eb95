#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

// How a launch ended, in words.

namespace remote::cli {

// "rank 2 on node-2 failed first (exit 3, 2026-11-21 14:03:11 UTC+1, 0.2 s before the next)", of a launch
// that did not succeed.
std::string verdict_headline(const Verdict& verdict);
// "attempt 1: rank 1 on node-2 failed (exit 3) after 12 s"
std::string attempt_text(const Attempt& attempt);
// The reason why it did not restart although restarts were left; "" if the headline has it, or without
// restarts.
std::string no_restart_text(const Verdict& verdict);
// What to try where the first failure's output shows what is missing; else "".
std::string verdict_hint(const Verdict& verdict, bool has_one_rank_each = false);
// Counts the processes that these jobs left running and names the command that kills them; "" if none runs.
std::string processes_left_note(const std::vector<Job>& jobs);
// Limits of these jobs' success: processes that still run, and an exit status that is only
// that of a pipe's last program.
std::vector<std::string> success_notes(const std::vector<Job>& jobs);
// "3 others were ended after it, 1 succeeded": what became of the ranks but for the first that failed; "" for
// none.
std::string aftermath(const Verdict& verdict);
// What went wrong while jobs were followed, and of a launch the verdict, on stderr: in one line where all is
// well, else who failed first, the last lines that it wrote unless these were just shown, and what became of
// the others.
void show_end(Context& context, const FollowResult& result, bool shown = false);

}  // namespace remote::cli
