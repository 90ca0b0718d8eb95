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

// Two samples of a launch's processes, and the conclusions from them.

namespace remote::jobs {

// A server's complete answer.
struct WhyAnswer {
  struct Look {
    std::chrono::duration<double> at{0};  // since the server's boot
    std::map<int, wire::ProcessSample> processes{};
    std::map<int, wire::RankSample> ranks{};
    std::vector<wire::ProcessStack> stacks{};
  };
  std::array<Look, 2> looks{};
  std::vector<wire::FlightEntry> flights{};
  std::set<std::string> addresses{};       // this server's addresses, in the kernel's hexadecimal digits
  std::set<std::string> silent{};          // addresses that do not acknowledge
  wire::FactsReply facts{};                // load, GPUs and disks
  std::optional<wire::HangRecord> hang{};  // if evidence was kept

  void add(wire::WhyReply part);
};

// Takes two samples of these jobs on a server. Throws like servers::Agent::ask().
WhyAnswer ask_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids,
                  const std::string& activate, const WhyRequest& request);

// Reads the evidence of a hang that the lifeline kept (src/agent/launch/hang_watch.hpp). The answer has no
// `hang` if there is none. Throws like servers::Agent::ask().
WhyAnswer ask_kept_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids);

// One server's answer about the launch's jobs there, which had not ended as far as was known.
struct WhySample {
  std::string server;
  std::vector<Job> jobs;
  WhyAnswer answer;
};

// The first collective of each process group that did not complete, as far as these entries show.
std::vector<WhyCollective> collectives_in(const std::vector<wire::FlightEntry>& flights);

// `others` are the launch's jobs that were not sampled: ended ones, and those of servers that do not answer.
Why judge(const std::vector<WhySample>& samples, const std::vector<Job>& others, ExactInstant now);

// Samples all of these jobs, which must belong to one launch. Final ones are skipped.
Why look_why(const Site& site, const std::vector<Job>& jobs, const WhyRequest& request);

// The same for the time at which the hang was detected. Throws Error (usage) if no evidence was kept.
Why look_kept(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
