#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/job/backend.hpp"
#include "agent/job/lifelines.hpp"
#include "wire/jobs.hpp"

namespace remote::agent {

// Estimates the size of a report in a message, in bytes.
std::size_t estimate_size(const wire::JobReport& report);

// Reads the file `hung` of a job's folder: MS SECONDS [MS], written by agent/launch/hang_watch.cpp.
std::optional<wire::HangRecord> read_hung(const Path& folder);

struct ReportOptions {
  bool claim = false;        // see wire::StateRequest
  bool proven_gone = false;  // the job is known to have no processes, so they are not searched again
  bool last_line = false;
};

// Makes reports about jobs, for one request. Also cleans up: removes abandoned shared files, restarts dead
// lifelines, and moves results from the fallback folder to the job's folder. Not thread-safe.
class Reporter {
 public:
  explicit Reporter(Backends& backends)
      : backends_(backends), host_(backends.host()), lifelines_(backends.host(), backends.folder()) {}

  wire::JobReport report(const std::string& id, const ReportOptions& options);
  // Completes the reports: waits for undecided jobs and queries the resource usage of finished jobs. Call it
  // after all report() calls.
  void finish(std::vector<wire::JobReport>& reports);
  // Returns whether finish() may change the report of this job.
  bool is_open(const std::string& id) const { return abandoned_.contains(id) || used_.contains(id); }

 private:
  struct Found;

  Found find_job(const std::string& id, const ReportOptions& options);
  Found find_missing(const std::string& id, bool may_claim);
  std::optional<int> find_process(const std::string& id);
  void describe(wire::JobReport& report, const JobRecord& job);
  void describe_end(wire::JobReport& report, const JobRecord& job);
  void describe_lifeline(wire::JobReport& report, const JobRecord& job);
  void decide_abandoned(std::vector<wire::JobReport>& reports);
  void add_usage(std::vector<wire::JobReport>& reports);

  Backends& backends_;
  const Host& host_;
  Lifelines lifelines_;
  std::optional<std::string> machine_;                // read_machine_digest(), once it is needed
  std::optional<std::map<std::string, int>> living_;  // one living process of each job, by job
  // Jobs whose supervisor files are empty, and may be about to be written.
  std::map<std::string, ReportOptions> abandoned_;
  bool is_landing_due_ = false;            // see land_trees()
  std::map<std::string, JobRecord> used_;  // finished jobs whose usage is not yet known
};

}  // namespace remote::agent
