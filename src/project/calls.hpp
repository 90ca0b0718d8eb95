#pragma once

#include <remote/project.hpp>

#include "project/core.hpp"

// What each call of Project does, a file each. project.hpp documents them.

namespace remote::project {

std::vector<ServerInfo> describe_servers(const Core& core, const std::vector<std::string>& globs);
std::vector<ServerRun> run(Core& core, const RunRequest& request);
std::vector<PrepareResult> prepare(Core& core, const PrepareRequest& request);

Plan plan(Core& core, const LaunchRequest& request);
LaunchResult launch(Core& core, const LaunchRequest& request);
StartResult start(Core& core, const JobRequest& request);

std::vector<Job> list(Core& core, const JobsRequest& request);
std::vector<Job> stored_jobs(Core& core, bool unfinished_only = false);
std::vector<Job> refresh(Core& core, std::vector<Job> jobs);
// Tells which of these jobs run without a lifeline; whether there was one.
bool tell_missing_lifelines(Core& core, const std::vector<Job>& jobs);

FollowResult follow(Core& core, const std::vector<Job>& jobs, const FollowRequest& request);
FollowResult wait(Core& core, const std::vector<Job>& jobs,
                  std::function<void(std::size_t, const Job&)> on_ended);
// The verdict about a launch, with the last lines that its first failed rank wrote.
Verdict judge(Core& core, const std::vector<Job>& jobs);

KillResult kill(Core& core, const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel);
StacksResult stacks(Core& core, const std::vector<Job>& jobs);
SyncReport pull(Core& core, const PullRequest& request);
std::vector<Error> fetch_logs(Core& core, const std::vector<Job>& jobs);
CleanResult clean(Core& core, const std::vector<Job>& jobs);
std::vector<AuthorizeResult> authorize(Core& core, const AuthorizeRequest& request);

// "ada@laptop": who does this.
std::string user_at_host();

}  // namespace remote::project
