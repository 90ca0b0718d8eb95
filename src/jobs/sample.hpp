#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/top.hpp>

#include "jobs/store.hpp"
#include "servers/agent.hpp"
#include "servers/facts.hpp"
#include "ssh/connection.hpp"

// A server and its jobs at one moment.

namespace remote::jobs {

struct Sample {
  servers::FactsAnswer facts;
  std::vector<JobSample> jobs;  // in their current states, including finished ones
};

// Takes samples of one server. Keeps its agent between samples if the server allows two sessions on a
// connection. The connection must outlive it. Not thread-safe.
class Sampler {
 public:
  Sampler(ssh::Connection& connection, const Cancel& cancel) : connection_(connection), cancel_(cancel) {}

  // `prologue` is the result of servers::prologue(). `jobs` must be in this folder of this server; those that
  // have changed are stored. Throws Interrupted and Error, including if nothing arrives for `patience`. Do
  // not use the object after an exception.
  Sample take(Store& store, const RemoteFolder& folder, const std::string& prologue,
              const std::vector<Job>& jobs, std::chrono::milliseconds patience);

 private:
  ssh::Connection& connection_;
  const Cancel& cancel_;
  std::optional<servers::Agent> agent_;
  bool lacks_gpus_ =
      false;  // the last sample found none, so the prologue, which may be slow, is not run again
};

}  // namespace remote::jobs
