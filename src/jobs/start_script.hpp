#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/job.hpp>

#include "jobs/backend_names.hpp"
#include "servers/run_command.hpp"
#include "wire/start.hpp"

// The specs of jobs: docs/protocol.md.

namespace remote::jobs {

struct StartRequest {
  JobId id;
  servers::ProcessSpec process;
  std::string backend{local_backend};
  // Additional files in the job's folder, by name: `init_file` (servers/init_file.hpp), if the launch has a
  // shared file; `tree`, the digest of a frozen launch's tree; `mpi_hosts`; for `slurm`, the batch script.
  std::vector<std::pair<std::string, std::string>> files{};
};

// The file of a job in a launch with restarts: docs/protocol.md.
inline constexpr std::string_view again_file = "again";
// The file of such a job without ranks until its server replaces another one.
inline constexpr std::string_view spare_file = "spare";

// The variable with the job's id, which every process of a job has in its environment.
inline constexpr std::string_view cookie_name = "REMOTE_JOB_ID";

// The specs of one server's jobs, which are equal except for variables, activation and command.
struct JobSpecs {
  wire::JobSpec common;
  std::vector<wire::OwnSpec> own;
};
// `is_leased`: the file `devices` in each job's folder lists its leased devices. Throws Error (usage) for an
// invalid variable or a NUL byte.
JobSpecs make_specs(const RemoteFolder& folder, const std::vector<StartRequest>& requests, bool is_leased);

}  // namespace remote::jobs
