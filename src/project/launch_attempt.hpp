#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/events.hpp>

#include "base/clock.hpp"
#include "jobs/start.hpp"
#include "launch/plan.hpp"
#include "project/code_check.hpp"
#include "project/core.hpp"
#include "project/history.hpp"
#include "project/init_file.hpp"
#include "servers/container.hpp"
#include "servers/facts.hpp"

// Only included by launch*.cpp in this folder. launch.cpp: the steps of a launch; launch_plan.cpp: facts
// about its servers, and the plan; launch_check.cpp: whether the servers are ready for it; launch_lease.cpp:
// its leases; launch_lifeline.cpp: the lifeline; launch_memory.cpp: facts about the servers for its record;
// launch_frozen.cpp: the trees of a frozen launch.

namespace remote::project {

// Sets the start time of `step` on construction, and the end time on destruction.
class StepTimer {
 public:
  StepTimer(LaunchStep& step, const char* name, const std::string& server) : step_(step) {
    step_ = {name, server, now_milliseconds(), {}};
  }
  ~StepTimer() { step_.to = now_milliseconds(); }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  LaunchStep& step_;
};

// A launch that is being started: the participating servers, and the connections to them. Not thread-safe.
class LaunchAttempt {
 public:
  // Connects to the servers. Throws Error (usage) for an invalid request. `code_was_sent`: the code in `git`
  // has just been sent to the servers.
  LaunchAttempt(Core& core, const LaunchRequest& request, GitState git, bool code_was_sent);

  Plan plan();
  // Call it after plan(). Throws Error if a server lacks resources that the launch leases, or if they are
  // taken and LeaseRequest::wait is not set. Reports each such server.
  void judge_leases();
  LaunchResult start();

 private:
  void check_restarts();
  void check_lease() const;
  std::vector<int> gpus_to_lease(const config::Server& server, const UsableGpus* gpus) const;
  std::vector<std::string> names_of_machine(std::size_t server) const;
  void check_hang();
  void choose_servers();
  void add_spares();
  // Throws Error with this reason if any server failed, after reporting each failure: a launch needs all of
  // its servers.
  void require_all(const std::vector<Error>& errors, const std::string& reason, Remedy remedy = Remedy::none);
  void connect_all();
  std::unique_ptr<ssh::Connection> connect(const config::Server& server) const {
    return core_.connector().connect(server, core_.cancel());
  }
  void verify_sync();
  // For seems_to_run(). Call it before the servers are asked.
  void remember_older_jobs();
  bool seems_to_run(const Job& job, const wire::FactsReply& answer) const;
  void tell_same_launch(const std::vector<Job>& own);
  // Reports which code the launch runs.
  void check_code();
  void freeze();
  void announce_questions();
  // The value that the user set for this variable.
  std::optional<std::string> given_variable(const std::string& name) const;
  void ready_containers();
  // Reports findings that would harm the launch. Throws Error if one of them would make it fail.
  void judge_servers(const Plan& plan);
  std::optional<Finding> find_missing_gpus(const Plan& plan, const std::string& server,
                                           const ServerFacts& facts) const;
  void warn_of_shared_gpus(const Plan& plan, std::vector<CheckWarned>& warnings) const;
  std::vector<Error> judge_server(std::size_t index, const Plan& plan, std::vector<CheckWarned>& warnings);
  std::vector<servers::FactsAnswer> ask_all(const std::string& master_addr);
  // Throws Error if the GPUs of a server cannot be counted or chosen as the launch asks for. `host`: as in
  // LaunchRequest::hosts, or nullptr. `env`: the server's variables.
  void check_gpus(const config::Server& server, const ServerFacts& facts, const LaunchHost* host,
                  const Env& env) const;
  // Throws Error if the ranks would use GPUs whose driver does not answer.
  static void require_driver(const config::Server& server, const ServerFacts& facts);
  launch::Node node_of(const config::Server& server, const servers::FactsAnswer& answer,
                       const std::string& master_addr);
  void plan_spares(Plan& plan, const Plan& with_spares, const std::vector<launch::Node>& nodes) const;
  std::optional<wire::LaunchSpec> plan_lifeline(const Plan& plan);
  bool can_notify();
  // Whether the first server has no Python to post to the URL of `notify`.
  bool lacks_python_to_notify() const;
  // The servers with processes, including those of spares.
  std::vector<wire::LaunchServer> list_supervised(const Plan& plan) const;
  // Sets the reactions to failures, from the request and the plan.
  void describe(wire::LaunchSpec& spec, const Plan& plan) const;
  // Contains secrets; does not include the launch itself.
  std::optional<wire::NotifySpec> make_notify_spec(const Plan& plan) const;
  // For each server, the sum of `count` over its planned processes, including those of spares.
  std::vector<int> by_server(const Plan& plan, int (*count)(const PlannedProcess&)) const;
  std::vector<jobs::NewJob> new_jobs(const Plan& plan) const;
  jobs::StartResult start_jobs(const Plan& plan, const std::optional<wire::LaunchSpec>& launch);
  std::string ssh_ways(const Plan& plan, const std::vector<jobs::NewJob>& jobs) const;
  void end_started(std::vector<Job>& jobs);
  void await_lifelines(const wire::LaunchSpec& spec, const std::vector<Job>& ranks);
  // Facts for the record.
  ServerSetup setup_of(std::size_t server, const Plan& plan) const;
  std::vector<ServerSetup> setups(const Plan& plan) const;
  std::vector<LaunchStep> steps() const;

  Core& core_;
  const LaunchRequest& request_;
  GitState git_;
  const bool code_was_sent_;
  std::set<JobId> older_jobs_;     // those that had started before the servers were asked
  std::set<JobId> same_launches_;  // those that the user was warned of
  std::vector<config::Server> servers_;
  std::size_t spares_ = 0;  // number of spares, which are the last of servers_ and have no ranks at first
  std::map<std::string, LaunchHost> hosts_;  // by server, if set in LaunchRequest::hosts
  std::optional<CodeCheck> code_check_;
  std::optional<PreparedCheck> prepared_;           // nullopt without LaunchRequest::check
  std::vector<ssh::LoginFacts> logins_;             // by server
  std::string first_address_;                       // how this machine reaches the first server
  std::vector<servers::FactsAnswer> answers_;       // by server, set by plan()
  std::map<std::string, wire::LeaseTerms> leases_;  // by server
  std::vector<ChosenRanks> chosen_;
  std::optional<InitFile> init_file_;                        // set by plan()
  std::map<std::string, servers::ContainerRun> containers_;  // by server with a container, once it is ready
  std::vector<CodeChanged> changed_;                         // code changes reported by start()
  std::string tree_;                                         // the digest of the tree of a frozen launch
  std::vector<LaunchStep> freezing_;                         // by server, for a frozen launch
  std::vector<LaunchStep> connecting_;                       // by server
  std::vector<LaunchStep> looking_;                          // by server
  std::vector<LaunchStep> readying_;                         // by server with a container
  LaunchStep starting_;
};

}  // namespace remote::project
