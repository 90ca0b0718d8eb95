#include "agent/slurm/state.hpp"

#include <string_view>

#include <unistd.h>

#include "agent/slurm/ends.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::JobPhase;
using namespace std::chrono_literals;

// While a job is ending, a request polls at most this many times, every 100 ms.
constexpr int most_waits = 15;

JobState make_state(JobPhase phase, const std::string& reason) {
  JobState state;
  state.phase = phase;
  state.reason = wire::to_line(reason, 1000);
  return state;
}

// "2024-05-01T12:00" for "2024-05-01T12:00:30", "" for "N/A".
std::string without_seconds(const std::string& time) {
  return is_slurm_time(time) ? time.substr(0, time.rfind(':')) : "";
}

std::string describe_queued(const SlurmRow& row) {
  std::string text = "Slurm job " + row.number;
  if (row.state != "PENDING") {
    text += ", " + row.state + (row.reason.empty() ? "" : " (" + row.reason + ")");
  } else if (!row.reason.empty()) {
    text += ", " + row.reason;
  }
  const std::string begin = without_seconds(row.begin);
  return begin.empty() ? text : text + ", expected to start " + begin;
}

std::string describe_running(const SlurmRow& row) {
  return "Slurm job " + row.number + (row.nodes.empty() ? "" : " on " + row.nodes) +
         (row.state == "RUNNING" ? "" : ", " + row.state);
}

bool is_not_empty(const Path& path) {
  const auto info = look_at(path);
  return info && info->st_size > 0;
}

}  // namespace

JobState SlurmStates::find(JobRecord& job, Look look) {
  if (job.has_result() && !exists(job.folder / "requeue")) {
    return find_of_ended(job, look);
  }
  const std::string number = read_slurm_number(job.folder);
  queue_.ask(look == Look::brief ? 2s : 500ms);
  const SlurmRow* row = queue_.find(job.id, number);
  if (row == nullptr && queue_.trouble().empty() && queue_.may_be_older_than(job.folder / "slurm")) {
    queue_.ask(0ms);
    row = queue_.find(job.id, number);
  }
  if (!queue_.trouble().empty()) {
    // Even a result is not final, because Slurm may requeue the job.
    return make_state(JobPhase::unknown, queue_.trouble());
  }
  if (row != nullptr && row->kind() == SlurmKind::queued) {
    return make_state(JobPhase::queued, describe_queued(*row));
  }
  if (row != nullptr && row->kind() == SlurmKind::running) {
    return make_state(JobPhase::running, describe_running(*row));
  }
  // The job is over, and has written its result. A shared file system may show the file late: listing the
  // folder refreshes its cache.
  list_names(job.folder);
  auto fresh = read_record(host_, folder_, job.id);
  if (!fresh) {
    return make_state(JobPhase::unknown, "its folder is not there or cannot be seen");
  }
  job = *std::move(fresh);
  if (job.has_result()) {
    if (row != nullptr) {
      keep_slurm_end(host_, job, row->state, row->reason);
    }
    return make_state(JobPhase::ended, explain_slurm_end(job));
  }
  std::optional<wire::JobEnd> end;
  if (row != nullptr) {
    keep_slurm_end(host_, job, row->state, row->reason);
    end = find_slurm_end(tools_, *row);
  } else if (!is_not_empty(job.folder / "slurm.end")) {
    if (number.empty() && !job.supervisor && !job.is_claimed) {
      return make_state(JobPhase::starting, "");
    }
    if (const auto accounted = accounts_.find(number)) {
      keep_slurm_end(host_, job, accounted->state, "");
      end = accounted->end;
    }
  }
  if (!end) {
    return make_state(JobPhase::gone, explain_slurm_end(job));
  }
  end->at = end->at.value_or(read_wall_clock());
  job.end = end;
  JobState state = make_state(JobPhase::ended, explain_slurm_end(job));
  put_result(host_, job, *end);
  return state;
}

JobState SlurmStates::find_of_ended(const JobRecord& job, Look look) {
  if (look == Look::brief) {
    return make_state(JobPhase::ended, "");
  }
  const bool succeeded = job.end && job.end->how.succeeded();
  if (look == Look::all || job.recorded.stop) {
    // After a stop, and before the folder is removed, all of the job's processes must be gone.
    queue_.ask(200ms);
    const SlurmRow* row = find_row(job);
    if (row != nullptr && row->kind() != SlurmKind::ended) {
      return make_state(JobPhase::running, "Slurm still has its job " + row->number + ": " + row->state);
    }
  } else if (!succeeded && !exists(job.folder / "slurm.end")) {
    await_end(job);
  }
  return make_state(JobPhase::ended, explain_slurm_end(job));
}

// Waits until Slurm notices the end of the batch script, because Slurm has a reason only then.
void SlurmStates::await_end(const JobRecord& job) {
  for (;; ++waits_) {
    queue_.ask(50ms);
    const SlurmRow* row = find_row(job);
    if (row != nullptr && row->kind() == SlurmKind::ended) {
      keep_slurm_end(host_, job, row->state, row->reason);
      return;
    }
    if (row == nullptr || waits_ >= most_waits) {
      return;
    }
    ::usleep(100'000);
  }
}

const SlurmRow* SlurmStates::find_row(const JobRecord& job) const {
  return queue_.find(job.id, read_slurm_number(job.folder));
}

}  // namespace remote::agent
