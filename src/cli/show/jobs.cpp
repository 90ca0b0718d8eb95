#include "cli/show/jobs.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/sweep.hpp>

#include "base/clock.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

// Ignores leftover processes.
std::string own_state_text(const Job& job) {
  std::string text(to_string(job.state));
  // For a job that was stopped, the reason already says by whom, including the signal: "killed SIGTERM by
  // ada@laptop"; "ended after rank 2" needs no state.
  std::string reason = jobs::reason_text(job.reason);
  if (job.state == JobState::killed) {
    using Kind = JobReason::Kind;
    if (job.reason.kind == Kind::after_rank || job.reason.kind == Kind::after_loss ||
        job.reason.kind == Kind::after_hang || job.reason.kind == Kind::not_needed) {
      return reason;
    }
    if (job.reason.kind == Kind::by_user || job.reason.kind == Kind::by_launch) {
      return text + " " + reason;
    }
  }
  if ((job.state == JobState::failed || job.state == JobState::killed) && job.result) {
    text += " " + job.result->describe();
  }
  if (const auto still = still_since(job); still && reason.empty()) {
    reason = "hung: no progress since " + format_local_time(*still);
  }
  if (!job.waits.empty()) {
    const std::size_t more = job.waits.size() - 1;
    reason =
        "waiting in " + wait_text(job.waits.front()) + (more > 0 ? fmt::format(" and {} more", more) : "");
  }
  if (!reason.empty()) {
    text += " (" + reason + ")";
  }
  return text;
}

}  // namespace

std::string wait_text(const DebuggerWait& wait) {
  constexpr std::size_t longest = 40;
  const std::string file = visible_line(wait.file);
  const std::size_t cut = file.size() <= longest ? 0 : file.rfind('/') + 1;
  return fmt::format("{} {}:{}",
                     wait.error.empty() ? "breakpoint()" : "pdb after " + visible_line(wait.error),
                     visible_line(file.substr(cut), 2 * longest), wait.line);
}

std::string attach_command(const Job& job, const DebuggerWait& wait) {
  const std::optional<int> rank = wait.rank ? wait.rank : job.rank;
  return fmt::format("remote attach{} --job {}", rank ? fmt::format(" {}", *rank) : "", job.key);
}

std::optional<Instant> still_since(const Job& job) {
  return job.state == JobState::running && job.hung && !job.hung->moved_at
             ? std::optional(job.hung->at - job.hung->stood)
             : std::nullopt;
}

std::string state_text(const Job& job) {
  const std::string text = own_state_text(job);
  return (is_final(job.state) ? text + left_text({job}) : text) + elsewhere_text({job});
}

std::string rank_numbers(const Job& job) {
  const int first = job.rank.value_or(0);
  const int count = ranks_of(job);
  return count == 1 ? std::to_string(first) : fmt::format("{}-{}", first, first + count - 1);
}

std::string rank_text(const Job& job) {
  return (ranks_of(job) == 1 ? "rank " : "ranks ") + rank_numbers(job);
}

std::string failed_node(const Job& job) {
  using enum JobReason::Kind;
  const bool tells = std::ranges::count(std::array{none, out_of_memory, server_out_of_memory, disk_full,
                                                   quota_used_up, disk_read_only},
                                        job.reason.kind) > 0;
  return tells && job.state == JobState::failed && ranks_of(job) == 1 ? visible_line(job.reason.text) : "";
}

std::string describe(const Job& job) {
  const std::string node = failed_node(job);
  if (job.point) {
    return fmt::format("job {} ({}{})", job.key, visible_line(sweep_point_text(job.point->values), 60),
                       job.point->waiting ? "" : " on " + job.server);
  }
  return job.rank
             ? fmt::format("job {} ({} on {})", job.key, rank_text(job), node.empty() ? job.server : node)
             : fmt::format("job {} on {}", job.key, job.server);
}

std::string kill_command(const std::vector<Job>& jobs) {
  std::string command = "remote job-kill";
  for (const Batch& batch : by_launch(jobs)) {
    if (!is_over(batch)) {
      command += fmt::format(" --{} {}", batch.front().launch ? "launch" : "job", batch.front().key);
    }
  }
  return command;
}

std::string started_unsaved(const std::vector<Job>& jobs) {
  std::vector<int> keys;
  std::ranges::transform(jobs, std::back_inserter(keys), &Job::key);
  const bool one = jobs.size() == 1;
  return fmt::format(
      "{} {} started, and the start is not recorded here; do not start {} again. To stop {}: {}",
      one ? "job" : "jobs", ranges(keys) + (one ? " was" : " were"), one ? "it" : "them", one ? "it" : "them",
      kill_command(jobs));
}

nlohmann::ordered_json jobs_json(const std::vector<Job>& jobs) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return array;
}

int exit_code_of(const Job& job) {
  if (job.state == JobState::succeeded || job.reason.kind == JobReason::Kind::not_needed) {
    return 0;
  }
  const int code = job.result ? job.result->shell_code() : 1;
  return code != 0 ? code : 1;
}

}  // namespace remote::cli
