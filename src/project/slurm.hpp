#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/start.hpp"
#include "project/core.hpp"
#include "project/git_state.hpp"

// Launches and jobs on a login node, which Slurm runs.

namespace remote::project {

// The login node for a launch; nullopt: its servers have no scheduler. Throws Error (usage) if the request is
// not supported on the servers that it names.
std::optional<config::Server> login_of(const Core& core, const LaunchRequest& request);

// The variable in a shell request that contains options for srun.
inline constexpr std::string_view allocate_variable = "REMOTE_ALLOCATE";

// Options for sbatch in all jobs of a login node: "--partition=gpu", ….
std::vector<std::string> sbatch_options(const config::Slurm& settings);

// The settings with the options from the variables in a request (SBATCH_PARTITION and so on), which are
// removed from it. Throws Error (usage).
config::Slurm take_options(config::Slurm settings, Env& env);
bool chooses_option(std::string_view variable);

Plan plan_on_slurm(const config::Server& login, const LaunchRequest& request, const std::string& commit);
LaunchResult launch_on_slurm(Core& core, const config::Server& login, const LaunchRequest& request,
                             GitState git, bool code_was_sent);

// The container for jobs of a login node, from `image` (see LaunchRequest) or configs.yaml. Only apptainer is
// supported, because its processes belong to the job, so that Slurm can track and kill them. Throws Error
// (usage) for other engines.
std::optional<Container> container_on_slurm(const config::Server& login,
                                            const std::optional<std::string>& image);

// The path to the copy of the programs for jobs (docs/protocol.md), relative to a job's folder, for its batch
// script.
std::string program_for_nodes();

// The single job, or the jobs of an array, made from a job for a login node.
std::vector<jobs::NewJob> slurm_jobs(const config::Config& config, const config::Server& login,
                                     const JobRequest& request, jobs::NewJob job);

// The ids of the jobs that must succeed before a job on this server starts. Throws Error (usage) for a job on
// another server or in another folder.
std::vector<JobId> ids_before(const config::Config& config, const config::Server& server,
                              const std::vector<Job>& after);

}  // namespace remote::project
