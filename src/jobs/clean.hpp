#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "jobs/backend.hpp"
#include "jobs/job.hpp"
#include "jobs/remote_folder.hpp"
#include "jobs/store.hpp"
#include "servers/action.hpp"
#include "ssh/connector.hpp"

// Removing ended jobs: their folders on the servers, then their records here.

namespace remote::jobs {

struct CleanReply {
  // removed: the folder is gone; none: there was none; running: left alone, because something of it lives or
  // may start yet; failed: the folder cannot be removed
  enum class Outcome { removed, none, running, failed };
  JobId id;
  Outcome outcome = Outcome::failed;
  std::string reason;  // for running and failed
  bool gone() const { return outcome == Outcome::removed || outcome == Outcome::none; }
};

struct CleanAnswer {
  std::vector<CleanReply> jobs;
  void take(servers::AnswerLine& line);
};

// Removes the folders of ended jobs on one server. The server looks itself whether each has really ended.
servers::Action<CleanAnswer> clean_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                          const std::vector<Backend>& known = backends());

// All jobs of a server in one exec, servers side by side. A record is removed only after its server has said
// that the folder is gone. The jobs must have ended as far as is known here.
CleanResult clean(const config::Config& config, Store& store, ssh::Connector& connector,
                  const std::vector<Job>& jobs, const Cancel& cancel);

}  // namespace remote::jobs
