#include "cli/show/job_words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/visible.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {

std::string state_text(const Job& job) {
  std::string text(jobs::to_string(job.state));
  // A job that was ended says by whom, and that reason already names the signal: "killed SIGTERM by
  // ada@laptop"; "ended after rank 2" stands for itself.
  if (job.state == JobState::killed && !job.reason.empty()) {
    if (job.reason.starts_with("ended after ")) {
      return job.reason;
    }
    if (job.reason.starts_with("SIG")) {
      return text + " " + job.reason;
    }
  }
  if ((job.state == JobState::failed || job.state == JobState::killed) && job.result) {
    text += " " + job.result->describe();
  }
  if (!job.reason.empty()) {
    text += " (" + job.reason + ")";
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
