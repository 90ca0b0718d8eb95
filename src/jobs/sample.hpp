#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/top.hpp>

#include "jobs/protocol.hpp"
#include "jobs/store.hpp"
#include "servers/load.hpp"
#include "ssh/connection.hpp"

// A server with its jobs at a moment: one exec.

namespace remote::jobs {

struct SampleAnswer {
  servers::LoadAnswer load{};
  StatusAnswer status{};
  std::vector<std::pair<JobId, std::string>> last_lines{};
  bool with_jobs = false;  // set before: the answer must have the server's clock

  void take(servers::AnswerLine& line);
  void check() const;
};

// Asks about the server and these jobs, which may be none.
servers::Action<SampleAnswer> sample_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::vector<Backend>& known);

struct Sample {
  servers::LoadAnswer load;
  std::vector<JobSample> jobs;  // as they are now; those that have ended are among them
};

// Asks over this connection. `jobs`: of this server and this folder. What they have become goes into the
// store where it has changed. Throws Error, also when nothing comes for `patience`, and Interrupted.
Sample take_sample(ssh::Connection& connection, Store& store, const RemoteFolder& folder,
                   const std::vector<Job>& jobs, const std::vector<Backend>& known,
                   std::chrono::milliseconds patience, const Cancel& cancel);

}  // namespace remote::jobs
