#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/host/run.hpp"
#include "wire/slurm.hpp"

// The programs of Slurm.

namespace remote::agent {

// Not thread-safe.
class SlurmTools {
 public:
  explicit SlurmTools(const Host& host);

  // Finds squeue, and with it the other programs. They are often only on the PATH of a login shell.
  bool find();
  bool has(std::string_view program) const { return !host_.find_program(program).empty(); }
  // Returns PATH and the other variables that these programs need, as "NAME=VALUE".
  std::vector<std::string> list_variables() const;
  // Runs one of them; the code is 127 if it cannot be started. Each call needs a limit, because Slurm's
  // clients wait for a long time if the controller is down. `input`: see RunRequest.
  RunResult call(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                 bool with_stderr = false, int input = -1) const;
  // Runs sbatch or a similar program in this folder, with the environment that jobs inherit. `out` includes
  // its stderr. The code is 127 if it cannot be started.
  RunResult call_as_job(const std::vector<std::string>& argv, const Path& folder,
                        std::chrono::milliseconds limit) const;

 private:
  Host host_;
  std::map<std::string, std::string> settings_;  // the user's variables that call() omits
  std::optional<bool> found_;
};

// Handles the request of a client that runs one of them itself.
wire::SlurmProgramsReply find_slurm_programs(const Host& host);

// The last line that is neither empty nor a hint about --help.
std::string find_last_line(std::string_view text);

}  // namespace remote::agent
