#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <remote/project.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::project {

// How long servers that are only asked for news may take to connect, and then be silent.
inline constexpr std::chrono::milliseconds ask_limit{3000};

// What a Project holds.
class Core {
 public:
  // A null connector is replaced by the real one, over libssh.
  Core(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector = nullptr);

  const config::Config config;
  jobs::Store store;
  const Hooks hooks;

  const Cancel& cancel() const { return hooks.cancel; }
  // Asks for what the settings want of this machine. Throws Error (usage) where it is not allowed.
  void require_trust();
  // Whether the user allows this; yes is remembered.
  bool ask_for(const std::vector<Demand>& demands);
  // The connections of this project.
  ssh::Connector& connector();

  // Hands an event over. Any thread.
  void tell(const Event& event);
  // The callback as one that is not called while another one is.
  template <typename... Arguments>
  std::function<void(Arguments...)> one_at_a_time(std::function<void(Arguments...)> callback) {
    if (!callback) {
      return {};
    }
    return [this, callback = std::move(callback)](Arguments... arguments) {
      const std::lock_guard lock(callbacks_);
      callback(arguments...);
    };
  }

  std::vector<config::Server> servers(const std::vector<std::string>& globs) const {
    return config::select_servers(config, globs);
  }
  // The only one of that name or glob, on which `thing` runs ("a job"). Throws Error (usage), of which `what`
  // is what fails.
  config::Server one_server(const std::string& glob, const std::string& what,
                            const std::string& thing) const {
    std::vector<config::Server> found = servers({glob});
    if (found.size() != 1) {
      throw Error::usage(what, "'" + glob + "' names more than one server",
                         thing + " runs on one server; name it in full");
    }
    return std::move(found.front());
  }

 private:
  std::atomic<bool> trusted_ = false;
  std::recursive_mutex callbacks_;  // a callback may call the Project, which calls back
  std::mutex connector_mutex_;
  std::unique_ptr<ssh::Connector> connector_;  // made when it is first asked for
};

// The calls of Project, which project.hpp documents.

std::vector<ServerInfo> describe_servers(const Core& core, const std::vector<std::string>& globs);
std::vector<ServerState> server_states(Core& core, const std::vector<std::string>& globs);
void watch(Core& core, const WatchRequest& request);
std::vector<ServerRun> run(Core& core, const RunRequest& request);
ServerRun shell(Core& core, const ShellRequest& request);
std::vector<PrepareResult> prepare(Core& core, const PrepareRequest& request);
FirstSync first_sync(Core& core, const std::vector<std::string>& globs);

std::vector<LaunchHost> resolve_hosts(const Core& core, const std::vector<LaunchHost>& hosts);
Plan plan(Core& core, const LaunchRequest& request);
LaunchResult launch(Core& core, const LaunchRequest& request);
StartResult start(Core& core, const JobRequest& request);

std::vector<Job> list(Core& core, const JobsRequest& request);
// Where the jobs are recorded here: the configured folder, or one beside it where labml_remote has its jobs.
// labml_remote takes each name in that folder for a job of its own, and does not start where one is not.
std::filesystem::path store_folder(const config::Config& config);
// Makes records of the jobs that labml_remote has started in this project since, beside its own, which stay
// as they are. They are then jobs as all others: listed, asked about, ended, and their keys are not given
// again.
void adopt_labml_jobs(const Core& core);
std::vector<Job> stored_jobs(Core& core, bool unfinished_only = false);
ProjectStatus status(Core& core);
void status_was_told(Core& core, const ProjectStatus& status);
std::vector<Job> refresh(Core& core, std::vector<Job> jobs, std::chrono::milliseconds patience = ask_limit);
// Tells which of these jobs run without a lifeline; whether there was one.
bool tell_missing_lifelines(Core& core, const std::vector<Job>& jobs);

// `ended`: ranks of the same launch that need no following.
FollowResult follow(Core& core, const std::vector<Job>& jobs, const FollowRequest& request,
                    const std::vector<Job>& ended = {});
FollowResult wait(Core& core, const std::vector<Job>& jobs,
                  std::function<void(std::size_t, const Job&)> on_ended);
// The verdict about a launch, with the last lines that its first failed rank wrote.
Verdict judge(Core& core, const std::vector<Job>& jobs, const std::vector<std::string>& gone);

KillResult kill(Core& core, const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                ssh::ConnectLimit limit = {});
StacksResult stacks(Core& core, const std::vector<Job>& jobs);
SyncReport pull(Core& core, const PullRequest& request);
std::vector<Error> fetch_logs(Core& core, const std::vector<Job>& jobs);
CleanResult clean(Core& core, const std::vector<Job>& jobs);
std::vector<AuthorizeResult> authorize(Core& core, const AuthorizeRequest& request);

// What the project wants and the user has not allowed: settings and links.
std::vector<Demand> demands(Core& core);
// The links that are not to be followed when the project is sent, by their names in it; asks and tells.
std::vector<std::string> links_to_leave(Core& core);

// Those that would not be followed now, without a question.
std::vector<std::string> links_not_sent(const Core& core);

// "ada@laptop": who does this.
std::string user_at_host();

// What a command or job on a server gets: the server's variables, and those of the request, which win.
inline Env job_env(const config::Server& server, const Env& request) {
  Env env = server.variables();
  env.insert(env.end(), request.begin(), request.end());
  return env;
}

}  // namespace remote::project
