#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"

// Jobs and launches in words, and as JSON.

namespace remote::cli {

// "failed exit 1", "killed SIGTERM by ada@laptop", "ended after rank 2", "running": a job's state and why.
std::string state_text(const Job& job);
// Since when a running job stands still, as --hang-after found; seconds since the epoch. nullopt: it does
// not.
std::optional<std::int64_t> still_since(const Job& job);
// "breakpoint() train.py:88", "pdb after ValueError train.py:90".
std::string wait_text(const DebuggerWait& wait);
// "remote attach 1 --job 4"
std::string attach_command(const Job& job, const DebuggerWait& wait);
// "2"; of a job that runs several ranks "2-3". And with the word: "rank 2", "ranks 2-3".
std::string rank_numbers(const Job& job);
std::string rank_text(const Job& job);
// The node of Slurm on which a rank failed, where that is known; else "".
std::string failed_node(const Job& job);
// "job 3 (rank 2 on node-2)".
std::string describe(const Job& job);
// The command that ends those of the jobs that have not ended. Of launches, all unfinished ranks must be
// given.
std::string kill_command(const std::vector<Job>& jobs);
// What to know of jobs that were started although their records here could not be updated.
std::string started_unsaved(const std::vector<Job>& jobs);
// Jobs as one JSON array.
nlohmann::ordered_json jobs_json(const std::vector<Job>& jobs);
// 0 for a success; the exit code or 128+N of what failed; 1 where neither is known.
int exit_code_of(const Job& job);

// A plan as --dry-run shows it. Values of variables that look secret are masked, and what looks like one in
// the command.
std::string plan_text(const Plan& plan);
nlohmann::ordered_json plan_json(const Plan& plan);

// "rank 2 on node-2 failed first (exit 3, 2026-11-21 14:03:11 UTC+1, 0.2 s before the next)", of a launch
// that did not succeed.
std::string verdict_headline(const Verdict& verdict);
// "attempt 1: rank 1 on node-2 failed (exit 3) after 12 s"
std::string attempt_text(const Attempt& attempt);
// What to try where the first failure's output shows what is missing; else "".
std::string verdict_hint(const Verdict& verdict);
// "3 others were ended after it, 1 succeeded": what became of the ranks but for the first that failed; "" for
// none.
std::string aftermath(const Verdict& verdict);
// What went wrong while jobs were followed, and of a launch the verdict, on stderr: in one line where all is
// well, else who failed first, the last lines that it wrote, and what became of the others.
void show_end(Context& context, const FollowResult& result);

}  // namespace remote::cli
