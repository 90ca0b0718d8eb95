#include "cli/show/job_words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/visible.hpp"
#include "jobs/job_json.hpp"
#include "jobs/reason_text.hpp"

namespace remote::cli {

std::string state_text(const Job& job) {
  std::string text(to_string(job.state));
  // A job that was ended says by whom, and that reason already names the signal: "killed SIGTERM by
  // ada@laptop"; "ended after rank 2" stands for itself.
  std::string reason = jobs::reason_text(job.reason);
  if (job.state == JobState::killed) {
    using Kind = JobReason::Kind;
    if (job.reason.kind == Kind::after_rank || job.reason.kind == Kind::after_loss) {
      return reason;
    }
    if (job.reason.kind == Kind::by_user || job.reason.kind == Kind::by_launch) {
      return text + " " + reason;
    }
  }
  if ((job.state == JobState::failed || job.state == JobState::killed) && job.result) {
    text += " " + job.result->describe();
  }
  if (!reason.empty()) {
    text += " (" + reason + ")";
  }
  return text;
}

std::string describe(const Job& job) {
  return job.rank ? fmt::format("job {} (rank {} on {})", job.key, *job.rank, job.server)
                  : fmt::format("job {} on {}", job.key, job.server);
}

std::string job_json(const Job& job) {
  return jobs::to_json_text(job);
}

std::string jobs_json(const std::vector<Job>& jobs) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return dump_json(array);
}

int exit_code_of(const Job& job) {
  if (job.state == JobState::succeeded) {
    return 0;
  }
  const int code = job.result ? job.result->shell_code() : 1;
  return code != 0 ? code : 1;
}

}  // namespace remote::cli
