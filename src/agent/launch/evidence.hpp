#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

// The evidence that a launch hangs: the output of `job-why` about this server's ranks.

namespace remote::agent {

// Collects evidence in a separate process, because storage may hang.
struct EvidenceTaker {
  Path agent;        // the executable
  Path jobs_folder;  // absolute
  Path program;      // the folder of the server program in .bin
};

struct Evidence {
  std::string text;       // wire::WhyReply as lines of JSON
  bool all_wait = false;  // all ranks are only waiting for others: see shows_waiting()
};

// Runs `remote-agent why` for these jobs, which samples the ranks twice, `between` apart. At the time limit,
// the text has only the complete lines so far. Throws CannotStart. Blocking.
Evidence take_evidence(const Host& host, const EvidenceTaker& taker, std::chrono::seconds between,
                       const std::vector<std::string>& ids);

}  // namespace remote::agent
