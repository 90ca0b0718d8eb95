#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/top.hpp>

#include "jobs/protocol.hpp"
#include "jobs/store.hpp"
#include "servers/conversation.hpp"
#include "servers/facts.hpp"
#include "ssh/connection.hpp"

// A server with its jobs at a moment.

namespace remote::jobs {

struct SampleAnswer {
  servers::FactsAnswer facts{servers::load_request("").parts};
  StatusAnswer status{};
  std::vector<std::pair<JobId, std::string>> last_lines{};
  bool with_jobs = false;  // set before: the answer must have the server's clock

  void take(servers::AnswerLine& line);
  void check();
};

// Asks about the server and these jobs, which may be none.
servers::Action<SampleAnswer> sample_action(const RemoteFolder& folder, const std::vector<JobId>& ids);

struct Sample {
  servers::FactsAnswer facts;
  std::vector<JobSample> jobs;  // as they are now; those that have ended are among them
};

// Takes samples of one server, one after the other. A process there stays and takes them, as long as it is
// asked about the same jobs. Lives no longer than its connection. One thread.
class Sampler {
 public:
  Sampler(ssh::Connection& connection, const Cancel& cancel) : connection_(connection), cancel_(cancel) {}

  // `jobs`: of this server and this folder. What they have become goes into the store where it has changed.
  // Throws Error, also when nothing comes for `patience`, and Interrupted; then it is of no more use.
  Sample take(Store& store, const RemoteFolder& folder, const std::vector<Job>& jobs,
              std::chrono::milliseconds patience);

 private:
  SampleAnswer ask(const servers::Action<SampleAnswer>& action, bool with_jobs,
                   std::chrono::milliseconds patience);

  ssh::Connection& connection_;
  const Cancel& cancel_;
  std::string request_;  // what that process was asked
  SampleAnswer answer_;
  servers::AnswerReader reader_ = servers::reader_into(answer_);
  std::optional<servers::Conversation> talk_;
};

}  // namespace remote::jobs
