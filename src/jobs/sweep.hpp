#pragma once

#include <map>
#include <string>
#include <vector>

#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "jobs/start_script.hpp"
#include "wire/leases.hpp"
#include "wire/sweep_request.hpp"

// Requests about a sweep to one of its servers.

namespace remote::jobs {

using wire::SweepAsk;
using wire::SweepRunner;

// The points of a sweep and how to start them. Sent to each server once.
struct SweepPoints {
  std::vector<StartRequest> requests;  // by number; their ids are not used
  int slots = 1;
  std::optional<wire::LeaseTerms> lease{};  // for each point
  int retry = 0;
};

// A run of a sweep: its start, or its continuation.
struct SweepRun {
  JobId launch;
  wire::LinkTokens tokens;           // those of all members
  std::vector<std::string> servers;  // the first one distributes the points
  std::string address;
  int port = 0;
  std::vector<std::string> ids;  // by number; "": do not run this point now
};

// Starts the supervisor on the server `own`. Call keep_program() first. `points`: nullptr if the server
// already has them. `busy`: the points running there. Throws servers::Refused if that fails.
void begin_sweep(const AnyAgent& agent, const RemoteFolder& folder, const std::string& own,
                 const SweepRun& run, const SweepPoints* points, const std::vector<JobId>& busy);

struct SweepQuestion {
  SweepAsk ask = SweepAsk::look;
  JobId launch;
  std::vector<JobId> waiting{};  // points that may not have begun
  std::vector<JobId> tails{};    // points whose last lines are requested
};

struct SweepAnswer {
  SweepRunner runner = SweepRunner::none;
  std::string note;  // a problem; untrusted text
  std::map<JobId, std::string>
      given;                 // the requested ids that it assigned to a server, with the server's name
  std::vector<JobId> begun;  // those that began on this server
  std::map<JobId, std::vector<std::string>> tails;  // the last lines; untrusted text
};
SweepAnswer ask_sweep(const AnyAgent& agent, const RemoteFolder& folder, const SweepQuestion& question);

}  // namespace remote::jobs
