#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/code_check.hpp"
#include "project/git_state.hpp"
#include "project/history.hpp"
#include "project/sweep.hpp"
#include "servers/container.hpp"

// The servers of a sweep as it begins or goes on: what sweep.cpp and sweep_resume.cpp share.

namespace remote::project {

// A server that is ready for points.
struct Member {
  config::Server server;
  ssh::LoginFacts login;
  std::string address;  // by which this machine reaches it
  std::optional<int> port;
  std::optional<servers::ContainerRun> container;
};

// Those of the servers that can take part, the first one with a port for the others. `errors` gets why the
// others cannot, which is told, too. Throws Error where none can. `lease`: what a point has for itself.
std::vector<Member> ready_all(Core& core, const std::vector<config::Server>& servers,
                              const std::optional<std::string>& image, const LeaseRequest& lease,
                              std::vector<Error>& errors);
// Without ids.
jobs::SweepRun run_of(const std::vector<Member>& members, const JobId& launch);
// A point that waits, but for its command, tags and values.
Job waiting_job(const Core& core, const Member& first, const JobId& launch);

// Begins the run: on the first server, and then on the others, which may fail. `points`: by member; nullptr
// where they have them. Returns the servers that take part. Throws Error where the first one refuses.
std::vector<std::string> begin_run(Core& core, const std::vector<Member>& members, const jobs::SweepRun& run,
                                   const std::vector<jobs::SweepPoints>* points,
                                   const std::vector<Job>& running, std::vector<Error>& errors);
// Puts on record that nothing of these jobs was started.
void give_up(Core& core, std::vector<Job>& jobs, const Error& error);

// What each point of a sweep runs on a server.
std::string point_command(const SweepRequest& request, const SweepRow& point);
// The variables that all points have on a server, and those of one point.
Env sweep_env(const SweepRequest& request, const config::Server& server, const JobId& launch, GitState& git);
Env point_env(Env env, std::size_t number, const SweepRow& point);
// The command without values, for people.
std::string shown_command(const SweepRequest& request);
CodeCheck make_code_check(const Core& core, const SweepRequest& request);
// Asks the servers by CodeCheck::tell().
CodeCheck::Result check_members(Core& core, const std::vector<Member>& members, CodeCheck& code);
// The record of the sweep, as of a launch. Reports servers that run other code than the code here.
LaunchMemory remember_sweep(Core& core, const SweepRequest& request, const std::vector<Member>& members,
                            const JobId& launch, GitState& git, const CodeCheck::Result& found);

// Throws Error (usage) where one of the servers has Slurm, and that cannot do what is asked for.
void check_slurm_sweep(const SweepRequest& request, const std::vector<config::Server>& servers);
// As start_sweep(), on a server with Slurm. Throws Error where Slurm does not take the array.
SweepStarted start_slurm_sweep(Core& core, const SweepRequest& request, config::Server login,
                               const std::vector<SweepRow>& points);

// What Project::sweep() and resume_sweep() do.
SweepStarted start_sweep(Core& core, const SweepRequest& request);
SweepStarted resume_sweep(Core& core, const ResumeRequest& request);

}  // namespace remote::project
