#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <remote/check.hpp>
#include <remote/facts.hpp>

#include "config/config.hpp"

// What the facts of servers mean for a run. No server is asked, so all of it is tested with tables of cases.
// docs/check.md lists the findings with their thresholds, and why they are where they are.

namespace remote::project {

// What one server is by itself. A healthy one gets only ok.
std::vector<Finding> judge_server(const config::Config& config, const config::Server& server,
                                  const ServerFacts& facts);

// The machine, the login and the disks; judge_server() has these among its own.
void judge_machine(const ServerFacts& facts, std::vector<Finding>& findings);
void judge_disks(const ServerFacts& facts, std::vector<Finding>& findings);
void judge_gpus(const config::Server& server, const ServerFacts& facts, std::vector<Finding>& findings);
// Judges the project's torch, by its files and the GPUs.
Finding torch_finding(const ServerFacts& facts);
// Judges a vendor's program. `user`: the login.
Finding driver_finding(const GpuTool& tool, const std::string& user);

// A server beside the others.
// Commands for a server that list the folders under the path with the most bytes, or with the most files.
std::string list_large_folders(const std::string& path);
std::string list_full_folders(const std::string& path);

struct Compared {
  std::string server;
  ServerFacts facts;
  std::optional<int> expected_gpus{};          // as configs.yaml has it
  std::string sent{};                          // which state of the project it was sent; "": none
  std::optional<std::string> pip_options{""};  // of the fix, see below
};

// What should be the same on all: the findings for each of these servers, in their order. Nothing for a
// single server. The value of most servers is taken for the right one (of two that are as common, that of the
// first server).
std::vector<std::vector<Finding>> judge_same(const std::vector<Compared>& all);
// What configs.yaml adds to the options of pip: "--no-index --find-links wheels "; nullopt if an address has
// a password.
std::optional<std::string> pip_options(const config::Python& python);

// Of these, also for a launch. `excluded`: users that logind excludes already.
Finding clock_finding(std::chrono::duration<double> clock_ahead);
// Of a server that a launch has left out (ServerFacts::sick).
Finding sick_finding(const std::string& sick, const std::string& server);
Finding logout_finding(std::vector<std::string> excluded, const std::string& user);

// What a launch is told of a server whose facts it has asked for. A warning is a notice, a failure stops the
// launch. `jobs`: the folder of its jobs. `gpus`: the indices of the GPUs that its ranks may use; nullopt:
// all, as far as is known.
std::vector<Finding> judge_launch(const ServerFacts& facts, const std::string& jobs, const std::string& user,
                                  const std::optional<std::vector<int>>& gpus = std::nullopt);
// The GPUs that CUDA_VISIBLE_DEVICES of these variables leaves; nullopt: it is not there, or names them
// otherwise than by their indices.
std::optional<std::vector<int>> visible_gpus(const Env& env);

// "8 × NVIDIA A100-SXM4-80GB, 80 GiB", "none".
std::string gpu_words(const std::vector<Gpu>& gpus);

// "1.5 GiB", "300 MiB", "12 KiB".
std::string size_text(std::uint64_t bytes);

}  // namespace remote::project
