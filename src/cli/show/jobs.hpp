#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"

// Jobs and launches as text and as JSON.

namespace remote::cli {

// A job's state with the reason: "failed exit 1", "killed SIGTERM by ada@laptop", "ended after rank 2",
// "running".
std::string state_text(const Job& job);
// When a running job began to hang, as detected by --hang-after. nullopt: it does not hang.
std::optional<Instant> still_since(const Job& job);
// "breakpoint() train.py:88", "pdb after ValueError train.py:90".
std::string wait_text(const DebuggerWait& wait);
// "remote attach 1 --job 4"
std::string attach_command(const Job& job, const DebuggerWait& wait);
// "2", or "2-3" for a job that runs several ranks. rank_text() adds the word: "rank 2", "ranks 2-3".
std::string rank_numbers(const Job& job);
std::string rank_text(const Job& job);
// The Slurm node of the rank that failed; "" if unknown.
std::string failed_node(const Job& job);
// "job 3 (rank 2 on node-2)".
std::string describe(const Job& job);
// The command that kills the unfinished ones of these jobs. For a launch, all of its unfinished ranks must be
// passed.
std::string kill_command(const std::vector<Job>& jobs);
// A note about jobs that started although their records here could not be updated.
std::string started_unsaved(const std::vector<Job>& jobs);
// Jobs as one JSON array.
nlohmann::ordered_json jobs_json(const std::vector<Job>& jobs);
// 0 for success; otherwise the exit code, or 128+N for a signal; 1 if neither is known.
int exit_code_of(const Job& job);

}  // namespace remote::cli
