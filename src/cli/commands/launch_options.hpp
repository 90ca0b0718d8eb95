#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/launch.hpp>

#include "cli/commands/ends.hpp"
#include "cli/context.hpp"

// Groups of related options of the launch commands.

namespace remote::cli {

// The participating servers and GPUs: --hostfile, -H, --include, --exclude.
class HostOptions {
 public:
  // `servers`: the other option that names servers.
  void add(CLI::App& command, CLI::Option* servers);
  // Sets LaunchRequest::hosts. `servers`: the servers of a launch without these options. `forget_slots`: the
  // command line sets the number of ranks per server in another way.
  void choose(Context& context, const std::vector<std::string>& servers, bool forget_slots,
              LaunchRequest& request) const;

 private:
  void filter(Context& context, const std::vector<std::string>& servers,
              std::vector<LaunchHost>& hosts) const;

  std::string hostfile_;
  std::string hosts_;
  std::string include_;
  std::string exclude_;
};

// How the ranks find each other: --init-method, --init-dir.
class InitMethodOptions {
 public:
  void add(CLI::App& command);
  // `name`: of the command, for errors.
  void choose(const std::string& name, const LaunchDefaults& usual, LaunchRequest& request) const;

 private:
  std::optional<std::string> method_;
  std::optional<std::string> dir_;
};

// Options that only work with a login node of Slurm.
class SlurmOptions {
 public:
  void add(CLI::App& command, Context& context);
  bool requeue() const { return requeue_; }
  // The jobs in --after.
  std::vector<Job> jobs_before(Context& context) const;
  // Variables that set options of sbatch.
  const Env& env() const { return env_; }

 private:
  bool requeue_ = false;
  Env env_;
  std::vector<std::string> after_;
};

// --workdir: where the command runs on the servers.
class WorkdirOption {
 public:
  void add(CLI::App& command);
  bool given() const { return given_.has_value(); }
  // Sets REMOTE_WORKDIR, by default to the current folder within the project, and reports it. If --project is
  // given, the default is the project's folder.
  void choose(Context& context, Env& env) const;

 private:
  std::optional<std::string> given_;
};

// --restarts, --restart-on, --no-restart-exit, --min-servers
class RestartOptions {
 public:
  void add(CLI::App& command);
  // The command line overrides configs.yaml. `name`: of the command.
  void choose(const std::string& name, const LaunchDefaults& usual, LaunchRequest& request) const;

 private:
  std::optional<int> restarts_;
  std::optional<int> min_servers_;
  std::vector<std::string> restart_on_;
  std::vector<int> no_restart_exit_;
};

// --gpus, --cpus, --memory, --wait
class LeaseOptions {
 public:
  void add(CLI::App& command);
  // The command line overrides configs.yaml.
  LeaseRequest choose(const LaunchDefaults& usual) const;

 private:
  std::optional<int> gpus_;
  std::optional<int> cpus_;
  std::string memory_;
  std::optional<bool> wait_;
};

// --hang-after, --on-hang
class HangOptions {
 public:
  void add(CLI::App& command);
  // Call after RestartOptions. `name`: of the command.
  void choose(const std::string& name, const LaunchDefaults& usual, LaunchRequest& request) const;

 private:
  std::optional<double> minutes_;
  std::optional<std::string> action_;
};

// --launcher
void add_launcher_option(CLI::App& command, std::optional<std::string>& launcher);

// --rdzv, --nnodes, --max-restarts
class AgentOptions {
 public:
  void add(CLI::App& command);
  // The command line overrides `usual`.
  TorchrunOptions choose(const TorchrunOptions& usual) const;

 private:
  std::optional<std::string> rendezvous_;
  std::optional<std::string> nodes_;
  std::optional<int> max_restarts_;
};

// --image
void add_image_option(CLI::App& command, std::optional<std::string>& image);

// What to do after a start.
struct Onward {
  bool follow = false;
  bool pull = false;  // at the end
  const AtEnd* at_end = nullptr;
  std::string ranks_from{};  // appended to the number of ranks
};

// Starts a launch with `start`, and shows the result. Returns the exit code.
int start_on_screen(Context& context, const LaunchRequest& request, const Onward& onward,
                    const std::function<LaunchResult()>& start);

// For a job that waits for Slurm: "queued (Slurm job 12)".
std::string queued_words(const Job& job);

}  // namespace remote::cli
