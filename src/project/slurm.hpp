#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/start.hpp"
#include "project/core.hpp"
#include "project/git_state.hpp"

// Launches and jobs on a login node, where Slurm runs them.

namespace remote::project {

// The login node that a launch goes to; nullopt: it goes to servers without a scheduler. Throws Error (usage)
// where the request does not go with what it names.
std::optional<config::Server> login_of(const Core& core, const LaunchRequest& request);

// A shell's request has its options of srun in this variable.
inline constexpr std::string_view allocate_variable = "REMOTE_ALLOCATE";

// What all jobs of a login node say to sbatch: "--partition=gpu", ….
std::vector<std::string> sbatch_options(const config::Slurm& settings);

// The settings with the options that variables of a request choose (SBATCH_PARTITION and so on), which are
// taken out of it. Throws Error (usage).
config::Slurm take_options(config::Slurm settings, Env& env);
bool chooses_option(std::string_view variable);

Plan plan_on_slurm(const config::Server& login, const LaunchRequest& request, const std::string& commit);
LaunchResult launch_on_slurm(Core& core, const config::Server& login, const LaunchRequest& request,
                             GitState git, bool code_was_sent);

// The container of a login node's jobs, by `image` (see LaunchRequest) or configs.yaml: one of apptainer,
// whose processes are the job's own, so that Slurm knows and ends them. Throws Error (usage) for other
// engines.
std::optional<Container> container_on_slurm(const config::Server& login,
                                            const std::optional<std::string>& image);

// The copy of the programs for jobs (docs/protocol.md), from a job's folder, for its batch script.
std::string program_for_nodes();

// A single job, or those of an array, out of one that is to run on a login node.
std::vector<jobs::NewJob> slurm_jobs(const config::Config& config, const config::Server& login,
                                     const JobRequest& request, jobs::NewJob job);

// The ids of the jobs after which one on this server is to begin. Throws Error (usage) for a job of another
// place.
std::vector<JobId> ids_before(const config::Config& config, const config::Server& server,
                              const std::vector<Job>& after);

}  // namespace remote::project
