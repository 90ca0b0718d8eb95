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
// Since when a running job stands still, as --hang-after found. nullopt: it does not.
std::optional<Instant> still_since(const Job& job);
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

}  // namespace remote::cli
