#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/code_check.hpp"
#include "project/git_state.hpp"
#include "project/history.hpp"
#include "project/sweep.hpp"
#include "servers/container.hpp"

// The servers of a sweep when it starts or continues: shared by sweep.cpp and sweep_resume.cpp.

namespace remote::project {

// A server that is ready to run points.
struct Member {
  config::Server server;
  ssh::LoginFacts login;
  std::string address;  // how this machine reaches it
  std::optional<int> port;
  std::optional<servers::ContainerRun> container;
};

// Those of the servers that can take part; the first one has a port for the others. Reports why the others
// cannot, and adds that to `errors`. Throws Error if none can. `lease`: the resources that each point
// reserves.
std::vector<Member> ready_all(Core& core, const std::vector<config::Server>& servers,
                              const std::optional<std::string>& image, const LeaseRequest& lease,
                              std::vector<Error>& errors);
// Without ids.
jobs::SweepRun run_of(const std::vector<Member>& members, const JobId& launch);
// A waiting point without its command, tags and values.
Job waiting_job(const Core& core, const Member& first, const JobId& launch);

// Starts the run on the first server, then on the others, which may fail. `points`: by member; nullptr if the
// servers already have them. Returns the participating servers. Throws Error if the first server refuses.
std::vector<std::string> begin_run(Core& core, const std::vector<Member>& members, const jobs::SweepRun& run,
                                   const std::vector<jobs::SweepPoints>* points,
                                   const std::vector<Job>& running, std::vector<Error>& errors);
// Records that none of these jobs were started.
void give_up(Core& core, std::vector<Job>& jobs, const Error& error);

std::string point_command(const SweepRequest& request, const SweepRow& point);
// The variables of all points on a server, and those of one point.
Env sweep_env(const SweepRequest& request, const config::Server& server, const JobId& launch, GitState& git);
Env point_env(Env env, std::size_t number, const SweepRow& point);
// The command without values, for display.
std::string shown_command(const SweepRequest& request);
CodeCheck make_code_check(const Core& core, const SweepRequest& request);
// Compares the code on the servers with CodeCheck::tell().
CodeCheck::Result check_members(Core& core, const std::vector<Member>& members, CodeCheck& code);
// The record of the sweep, like that of a launch. Reports servers whose code differs from the code here.
LaunchMemory remember_sweep(Core& core, const SweepRequest& request, const std::vector<Member>& members,
                            const JobId& launch, GitState& git, const CodeCheck::Result& found);

// Throws Error (usage) if one of the servers uses Slurm and the request is not supported there.
void check_slurm_sweep(const SweepRequest& request, const std::vector<config::Server>& servers);
// As start_sweep(), on a server with Slurm. Throws Error if Slurm rejects the array.
SweepStarted start_slurm_sweep(Core& core, const SweepRequest& request, config::Server login,
                               const std::vector<SweepRow>& points);

// Implement Project::sweep() and resume_sweep().
SweepStarted start_sweep(Core& core, const SweepRequest& request);
SweepStarted resume_sweep(Core& core, const ResumeRequest& request);

}  // namespace remote::project
