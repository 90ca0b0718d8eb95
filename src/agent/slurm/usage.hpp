#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/job/record.hpp"
#include "agent/slurm/tools.hpp"
#include "wire/jobs.hpp"

// CPU time and memory of finished jobs, from Slurm's accounting.

namespace remote::agent {

// Parses sacct rows with the columns JobID, State, ElapsedRaw, TotalCPU, AllocCPUS, NNodes, ReqMem, MaxRSS
// and NTasks. Returns the finished jobs by number, except those whose counters are all 0. Computes like
// `seff`.
std::map<std::string, JobUsage> parse_usage_rows(std::string_view text);

// Parses the note slurm.used, "CPUS PERCENT MEMORY REQUESTED"; nullopt for any other text, such as "-".
std::optional<JobUsage> parse_usage(std::string_view text);

// Adds the usage to the reports of finished jobs, with a single call of sacct. The accounting lags: a job
// that ended less than two minutes ago may be missing, in which case the next request queries it again.
void report_slurm_usage(SlurmTools& tools, std::span<const JobRecord> jobs,
                        std::span<wire::JobReport*> reports);

}  // namespace remote::agent
