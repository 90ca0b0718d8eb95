#pragma once

#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "config/config.hpp"
#include "jobs/job.hpp"
#include "jobs/protocol.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::jobs {

struct KillOptions {
  int signal = 15;   // Linux's number
  int grace_s = 10;  // before KILL
  std::string by;    // who asks: "ada@laptop"
};

struct KillResult {
  struct Entry {
    Job job;          // as it is now
    KillReply reply;  // what the server did
  };
  std::vector<Entry> entries;  // jobs whose server answered
  std::vector<Error> errors;   // servers that did not
};

// Ends jobs, all of a server in one exec, servers side by side, and looks that nothing is left (kill_script).
KillResult kill(const config::Config& config, Store& store, ssh::Connector& connector,
                const std::vector<Job>& jobs, const KillOptions& options, const Cancel& cancel);

}  // namespace remote::jobs
