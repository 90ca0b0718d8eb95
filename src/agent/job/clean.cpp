#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "agent/container/boxes.hpp"
#include "agent/host/remove.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/init_file.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/second_place.hpp"
#include "agent/tree/trees.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

// Removes the folders of finished jobs. Keeps jobs that are running or may still start, even if the client
// considers them finished.

namespace remote::agent {
namespace {

using wire::CleanOutcome;

// A claim blocks a delayed start request, so it is kept for a while.
constexpr std::chrono::seconds claim_lifetime{60};

class Cleaner {
 public:
  explicit Cleaner(Backends& backends) : backends_(backends), boxes_(backends.host()) {}

  std::vector<wire::CleanedJob> clean(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      results_.push_back({.id = id, .outcome = CleanOutcome::removed});
    }
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (decide(results_[i]) == Decision::look_again) {
        again.push_back(i);
      }
    }
    if (!again.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      backends_.forget();
    }
    for (const std::size_t i : again) {
      decide(results_[i]);
    }
    remove_boxes();
    for (const JobRecord& job : ended_) {
      leave_init_file(job.folder, job.id);
    }
    for (wire::CleanedJob& result : results_) {
      if (result.outcome == CleanOutcome::removed) {
        remove(result);
      }
    }
    return std::move(results_);
  }

 private:
  enum class Decision { made, look_again };

  const Host& host() const { return backends_.host(); }
  const JobsFolder& folder() const { return backends_.folder(); }

  static Decision set(wire::CleanedJob& result, CleanOutcome outcome, std::string_view reason = "") {
    result.outcome = outcome;
    result.reason = wire::to_line(reason, 1000);
    return Decision::made;
  }

  // Decides whether to remove one job. If it has a result but still has a process, it is checked a second
  // time, because the supervisor's last process may need a moment to exit.
  Decision decide(wire::CleanedJob& result) {
    const Path path = folder().jobs / result.id;
    std::optional<JobRecord> job;
    if (!has_entry(path) || is_own_folder(path)) {
      job = read_record(host(), folder(), result.id);
    }
    if (!job) {
      return decide_unseen(result, path);
    }
    if (job->never_started()) {
      const auto age = read_wall_clock() - job->recorded.never_starts_since.value_or(wire::Moment());
      if (age < claim_lifetime) {
        return set(result, CleanOutcome::running,
                   "it was abandoned less than a minute ago, and its start may still be pending");
      }
      return take(result, *std::move(job));
    }
    const JobState state = backends_.find_state(*job, Look::all);
    if (state.phase == wire::JobPhase::running && job->has_result() &&
        looked_again_.insert(result.id).second) {
      return Decision::look_again;
    }
    return decide_by_state(result, *std::move(job), state);
  }

  Decision decide_by_state(wire::CleanedJob& result, JobRecord job, const JobState& state) {
    switch (state.phase) {
      case wire::JobPhase::starting:
      case wire::JobPhase::queued:
      case wire::JobPhase::running:
        break;
      case wire::JobPhase::unknown:
        return set(result, CleanOutcome::running, state.reason);
      default:
        return take(result, std::move(job));
    }
    if (state.phase == wire::JobPhase::starting && !job.supervisor && !state.pid) {
      // The job has no process. The claim prevents a late start, so that the next clean can remove it.
      claim(host(), folder(), result.id);
      return set(result, CleanOutcome::running, "its start did not get far; try again in a minute");
    }
    std::string reason = job.has_result() ? "one of its processes still runs" : "it still runs";
    if (state.pid) {
      reason += text::format(" (pid {})", *state.pid);
    }
    return set(result, CleanOutcome::running, reason);
  }

  // The job's folder is missing or inaccessible.
  Decision decide_unseen(wire::CleanedJob& result, const Path& path) {
    JobRecord job{.id = result.id, .folder = path};
    const JobState state = backends_.find("local")->find_state(job, Look::all);
    if (state.pid) {
      return set(
          result, CleanOutcome::running,
          text::format("it still runs (pid {}), but its folder is not there or cannot be seen", *state.pid));
    }
    const std::string obstacle = find_obstacle(folder(), result.id);
    if (!obstacle.empty()) {
      return set(result, CleanOutcome::failed, obstacle);
    }
    if (has_entry(path)) {
      return set(result, CleanOutcome::failed, path.string() + " is not a folder");
    }
    return set(result, CleanOutcome::none);
  }

  Decision take(wire::CleanedJob& result, JobRecord job) {
    result.outcome = CleanOutcome::removed;
    ended_.push_back(std::move(job));
    return Decision::made;
  }

  // Removes containers that are left over from before a reboot.
  void remove_boxes() {
    std::vector<const JobRecord*> boxed;
    std::map<std::string, std::string> failed;
    for (const JobRecord& job : ended_) {
      try {
        if (boxes_.find(job).value_or(BoxState::missing) != BoxState::missing) {
          boxed.push_back(&job);
          if (!boxes_.is_silent(job)) {
            remove_box(host(), job);
          }
        }
      } catch (const CannotStart& error) {
        failed[job.id] = error.what();
      }
    }
    boxes_.forget();
    for (const JobRecord* job : boxed) {
      try {
        if (boxes_.find(*job).value_or(BoxState::missing) != BoxState::missing) {
          failed[job->id] = "does the engine answer?";
        }
      } catch (const CannotStart& error) {
        failed[job->id] = error.what();
      }
    }
    for (wire::CleanedJob& result : results_) {
      if (const auto found = failed.find(result.id); found != failed.end()) {
        set(result, CleanOutcome::failed,
            text::format("its container {} cannot be removed: {}", box_name(result.id), found->second));
      }
    }
  }

  void remove(wire::CleanedJob& result) {
    const std::string reason = remove_folder(folder().jobs, result.id, std::string(journal_name));
    if (!reason.empty()) {
      set(result, CleanOutcome::failed, reason);
      return;
    }
    remove_second_journal(host(), result.id);
  }

  Backends& backends_;
  BoxList boxes_;
  std::vector<wire::CleanedJob> results_{};
  std::set<std::string> looked_again_{};
  std::vector<JobRecord> ended_{};
};

}  // namespace

wire::CleanReply clean(const Host& host, const wire::CleanRequest& request) {
  const Host patient = host.without_cancel();
  Backends backends(patient, JobsFolder::of(patient, request.place));
  wire::CleanReply reply{.jobs = Cleaner(backends).clean(request.ids)};
  drop_trees(patient, backends.folder());
  return reply;
}

}  // namespace remote::agent
