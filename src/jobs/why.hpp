#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/why.hpp>

#include "jobs/any_agent.hpp"
#include "jobs/site.hpp"
#include "wire/stacks.hpp"

// Two looks at a launch's processes, and what follows from them.

namespace remote::jobs {

// What a server answers, together.
struct WhyAnswer {
  struct Look {
    std::chrono::duration<double> at{0};  // since the server's boot
    std::map<int, wire::ProcessSample> processes{};
    std::map<int, wire::RankSample> ranks{};
    std::vector<wire::ProcessStack> stacks{};
  };
  std::array<Look, 2> looks{};
  std::vector<wire::FlightEntry> flights{};
  std::set<std::string> addresses{};       // of this server, in the kernel's hexadecimal digits
  std::set<std::string> silent{};          // that do not acknowledge
  wire::FactsReply facts{};                // load, GPUs and disks
  std::optional<wire::HangRecord> hang{};  // if it was kept

  void add(wire::WhyReply part);
};

// Takes two samples of these jobs on a server. Throws like servers::Agent::ask().
WhyAnswer ask_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids,
                  const std::string& activate, const WhyRequest& request);

// Reads the evidence of a hang that the lifeline kept (src/agent/launch/hang_watch.hpp). The answer has no
// `hang` if there is none. Throws like servers::Agent::ask().
WhyAnswer ask_kept_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids);

// What one server told of the launch's jobs there; these have not ended, as far as was known.
struct WhySample {
  std::string server;
  std::vector<Job> jobs;
  WhyAnswer answer;
};

// Of each process group the first collective that did not come about, as far as these tell.
std::vector<WhyCollective> collectives_in(const std::vector<wire::FlightEntry>& flights);

// `others`: the launch's jobs that were not looked at: ended ones, and those of servers that do not answer.
Why judge(const std::vector<WhySample>& samples, const std::vector<Job>& others, ExactInstant now);

// Looks at all of these jobs, which are of one launch; final ones are not asked about.
Why look_why(const Site& site, const std::vector<Job>& jobs, const WhyRequest& request);

// The same of the moment at which the launch was found to stand still. Throws Error (usage) where nothing was
// kept.
Why look_kept(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
