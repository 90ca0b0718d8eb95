#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

// The evidence that a launch hangs: the answer of `job-why` about this server's ranks.

namespace remote::agent {

// Takes evidence in a process of its own, because storage may hang.
struct EvidenceTaker {
  Path agent;        // the executable
  Path jobs_folder;  // absolute
  Path program;      // the folder of the server program in .bin
};

struct Evidence {
  std::string text;       // wire::WhyReply as lines of JSON
  bool all_wait = false;  // it shows that all ranks only wait for others: see shows_waiting()
};

// Runs `remote-agent why` for these jobs, which samples the ranks twice, `between` apart. The text has the
// whole lines up to the time limit. Throws CannotStart. Blocking.
Evidence take_evidence(const Host& host, const EvidenceTaker& taker, std::chrono::seconds between,
                       const std::vector<std::string>& ids);

}  // namespace remote::agent
