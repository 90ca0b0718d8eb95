#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/check.hpp>
#include <remote/facts.hpp>

#include "config/config.hpp"

// Derives the findings of `check` from facts about the servers. Contacts no server, so everything is tested
// with tables of cases. docs/check.md lists the findings, with the thresholds and the reasons for them.

namespace remote::project {

// The findings about a single server. All are ok if it is healthy.
std::vector<Finding> judge_server(const config::Config& config, const config::Server& server,
                                  const ServerFacts& facts);

// The machine, the login and the disks; judge_server() includes these.
void judge_machine(const ServerFacts& facts, std::vector<Finding>& findings);
void judge_disks(const ServerFacts& facts, std::vector<Finding>& findings);
void judge_gpus(const config::Server& server, const ServerFacts& facts, std::vector<Finding>& findings);
// About the project's torch, from its files and the GPUs.
Finding torch_finding(const ServerFacts& facts);
// About a vendor's program. `user`: the user name of the login.
Finding driver_finding(const GpuTool& tool, const std::string& user);

// Commands for a server that list the folders under the path with the most bytes, or with the most files.
std::string list_large_folders(const std::string& path);
std::string list_full_folders(const std::string& path);

struct Compared {
  std::string server;
  ServerFacts facts;
  std::optional<int> expected_gpus{};          // as in configs.yaml
  std::string sent{};                          // the project state that was sent to it; "": none
  std::optional<std::string> pip_options{""};  // for the fix, see below
  bool lacks_environment = false;              // the project's environment is not there, or does not work
  std::vector<int> gpu_indices{};              // the GPUs that its jobs may use; empty: all
};

// Settings that should be equal on all servers: the findings for each of these servers, in their order. Empty
// for a single server. The most common value counts as the right one (in a tie, that of the first server).
std::vector<std::vector<Finding>> judge_same(const std::vector<Compared>& all);
// pip's options from configs.yaml: "--no-index --find-links wheels "; nullopt if an address contains a
// password.
std::optional<std::string> pip_options(const config::Python& python);

// Whether this much of /dev/shm may be too little: NCCL uses several MiB for each pair of ranks, and the
// workers of a DataLoader pass their batches through it. The default in containers is 64 MiB.
bool is_small_shm(std::uint64_t bytes);

// These are also used for a launch. `excluded`: users that logind already excludes.
Finding shm_finding(const ServerFacts& facts);
Finding clock_finding(std::chrono::duration<double> clock_ahead);
// For a server that was excluded from a launch (ServerFacts::sick).
Finding sick_finding(const std::string& sick, const std::string& server);
// About a server whose machine has further names: `others`.
Finding same_machine_finding(const std::vector<std::string>& others);
Finding logout_finding(std::vector<std::string> excluded, const std::string& user);

// The findings that a launch reports about a server, from facts that it has already requested. A warning is
// only reported; a failure stops the launch. `jobs`: the folder of its jobs. `gpus`: the indices of the GPUs
// that its ranks may use; nullopt: all, as far as known.
std::vector<Finding> judge_launch(const ServerFacts& facts, const std::string& jobs, const std::string& user,
                                  const std::optional<std::vector<int>>& gpus = std::nullopt);
// The GPUs that CUDA_VISIBLE_DEVICES in these variables leaves visible; nullopt: not set, or not a list of
// indices.
std::optional<std::vector<int>> visible_gpus(const Env& env);

// "8 × NVIDIA A100-SXM4-80GB, 80 GiB", "none".
std::string gpu_words(const std::vector<Gpu>& gpus);

// "1.5 GiB", "300 MiB", "12 KiB".
std::string size_text(std::uint64_t bytes);

}  // namespace remote::project
