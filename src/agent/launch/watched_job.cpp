#include "agent/launch/watched_job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/last_words.hpp"
#include "agent/job/workers.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause_between_marks{10'000};

wire::Ending to_ending(const wire::ProcessEnd& end) {
  return end.signal != 0 ? wire::Ending{wire::EndKind::signal, end.signal}
                         : wire::Ending{wire::EndKind::exit, end.code};
}

wire::Ending to_worker_ending(const wire::ProcessEnd& end, bool was_out_of_memory) {
  wire::Ending ending = to_ending(end);
  if (end.signal == SIGKILL && was_out_of_memory) {
    ending.kind = wire::EndKind::out_of_memory;
  }
  return ending;
}

std::optional<rules::Round> find_round(const rules::JobHistory& recorded) {
  if (!recorded.last_attempt) {
    return std::nullopt;
  }
  return rules::Round{recorded.last_attempt->attempt,
                      to_worker_ending(recorded.last_attempt->end.how, recorded.was_out_of_memory)};
}

rules::Seconds measure_stop(const wire::StopRecord& stop, const std::optional<wire::Moment>& ended) {
  return ended ? std::max(rules::Seconds(*ended - stop.at), rules::Seconds(0)) : rules::Seconds(0);
}

}  // namespace

WatchedJob::WatchedJob(const Host& host, const JobsFolder& folder, std::string id, bool is_mpi,
                       bool has_restarts)
    : host_(host),
      jobs_(folder),
      id_(std::move(id)),
      folder_(folder.jobs / id_),
      is_mpi_(is_mpi),
      has_restarts_(has_restarts),
      fifo_(::open((folder_ / ".alive").c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {}

void WatchedJob::drain_fifo() {
  std::array<char, 512> buffer{};
  const ssize_t count = ::read(fifo_.get(), buffer.data(), buffer.size());
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    close_fifo();
  }
}

JobLook WatchedJob::look(int rank) {
  mark_output();
  JobLook found;
  rules::JobHistory recorded = read_history(host_, folder_, id_);
  if (has_restarts_) {
    found.round = find_round(recorded);
  }
  if (!recorded.has_ended()) {
    const bool is_visible = is_folder(folder_);
    found.has_ended = !may_run(is_visible);
    if (!found.has_ended || !is_visible) {
      found.failed_rank = is_mpi_ && is_visible ? find_failed_worker() : std::nullopt;
      return found;  // the folder is not visible and was removed
    }
    recorded = read_history(host_, folder_, id_);  // the record may have been written in the meantime
  }
  found.has_ended = true;
  const std::optional<wire::StopRecord>& stop = recorded.stop;
  if (stop && stop->by.cause == wire::StopCause::user) {
    found.stopped_for = measure_stop(*stop, recorded.end                  ? recorded.end->at
                                            : recorded.never_starts_since ? recorded.never_starts_since
                                                                          : read_wall_clock());
  }
  const bool is_success =
      recorded.never_starts_since.has_value() || (recorded.end && recorded.end->how.succeeded());
  if (!stop && !is_success) {
    found.failure = describe_failure(recorded, rank);
  }
  return found;
}

// Returns whether the job, which has no result, may still have processes or may not have started yet.
bool WatchedJob::may_run(bool is_visible) {
  const std::optional<JobRecord> record = read_record(host_, jobs_, id_);
  if (record) {
    if (record->backend != "local") {
      return true;  // its processes may be on other machines
    }
    supervisor_ = record->supervisor ? record->supervisor : supervisor_;
    main_ = record->main ? record->main : main_;
  }
  if (is_visible && (!supervisor_ || supervisor_->boot.empty())) {
    return true;
  }
  return (supervisor_ && is_alive(host_, supervisor_->id)) || (main_ && is_alive(host_, *main_));
}

std::optional<wire::RankFailure> WatchedJob::describe_failure(const rules::JobHistory& recorded,
                                                              int rank) const {
  const wire::Ending ending =
      recorded.end ? to_ending(recorded.end->how) : wire::Ending{wire::EndKind::gone, 0};
  const bool is_exit = ending.kind == wire::EndKind::exit;
  if (auto worker = is_exit ? find_failed_worker() : std::nullopt) {
    return worker;
  }
  wire::RankFailure failure{.rank = rank, .server = {}, .ending = ending, .after_peer = false, .mark = {}};
  const bool was_killed = ending.code == 9 || ending.code == 137;
  failure.after_peer = (is_mpi_ && is_exit) || (!was_killed && file_blames_peer(folder_ / "job.err"));
  return failure;
}

std::optional<wire::RankFailure> WatchedJob::find_failed_worker() const {
  std::optional<wire::RankFailure> killed;
  std::optional<wire::RankFailure> consequence;
  for (const WorkerEnd& worker : read_worker_ends(folder_)) {
    if (worker.rank > wire::RankFailure::max_rank) {
      continue;
    }
    const bool was_out_of_memory =
        worker.end.how.signal == SIGKILL && read_history(host_, folder_, id_).was_out_of_memory;
    wire::RankFailure failure{.rank = worker.rank,
                              .server = {},
                              .ending = to_worker_ending(worker.end.how, was_out_of_memory),
                              .after_peer = follows_peer(worker.rank, worker.end.how),
                              .mark = {}};
    // After a failure, MPICH's mpirun kills other ranks with KILL. The failure itself may be recorded later.
    if (!failure.after_peer && is_mpi_ && worker.end.how.signal == SIGKILL && !was_out_of_memory) {
      killed = killed ? killed : failure;
      continue;
    }
    if (!failure.after_peer) {
      return failure;
    }
    // mpirun sends signals to other ranks after a failure.
    if (!consequence && (worker.end.how.signal == 0 || worker.end.by != "mpirun")) {
      consequence = std::move(failure);
    }
  }
  return killed ? killed : consequence;
}

bool WatchedJob::follows_peer(int rank, const wire::ProcessEnd& end) const {
  const std::string number = std::to_string(rank);
  if (const Path raised = folder_ / "failures" / ("rank." + number); exists(raised)) {
    return file_blames_peer(raised, Links::refuse);
  }
  return end.signal == SIGABRT || end.signal == SIGTERM ||
         (is_own_folder(folder_ / "ranks") &&
          file_blames_peer(folder_ / "ranks" / (number + ".err"), Links::refuse));
}

rules::JobResult WatchedJob::read_result() const {
  const rules::JobHistory recorded = read_history(host_, folder_, id_);
  return {.succeeded = recorded.end && recorded.end->how.succeeded(),
          .ended_because = recorded.stop ? to_end_reason(recorded.stop->by) : std::nullopt};
}

std::vector<std::string> WatchedJob::list_output_files(std::optional<int> worker) {
  std::vector<std::string> files{"job.err", "job.out"};
  if (worker) {
    files.insert(files.begin(), text::format("ranks/{}.err", *worker));
  }
  return files;
}

void WatchedJob::mark_output() {
  const auto out = look_at(folder_ / "job.out");
  const auto err = look_at(folder_ / "job.err");
  const milliseconds now = read_wall_clock();
  const bool is_recent = now >= marked_at_ && now - marked_at_ < pause_between_marks;
  if (!out || !err || is_recent || marked_sizes_ == std::pair(out->st_size, err->st_size)) {
    return;
  }
  // Uses O_NONBLOCK, because the job can replace the file with a FIFO.
  const std::string line = text::format("{} {} {}\n", now.count(), out->st_size, err->st_size);
  if (write_job_file(folder_ / "marks", line, O_APPEND | O_NONBLOCK)) {
    marked_sizes_ = {out->st_size, err->st_size};
    marked_at_ = now;
  }
}

wire::StoppedBy to_stopped_by(const wire::EndReason& reason) {
  if (const auto* rank = std::get_if<wire::RankEnded>(&reason)) {
    return {.cause = wire::StopCause::rank, .number = rank->rank};
  }
  if (const auto* loss = std::get_if<wire::ServerLoss>(&reason)) {
    return {.cause = wire::StopCause::lost, .text = loss->server};
  }
  return {.cause = wire::StopCause::hang, .number = std::get<wire::Hang>(reason).seconds};
}

std::optional<wire::EndReason> to_end_reason(const wire::StoppedBy& by) {
  switch (by.cause) {
    case wire::StopCause::rank:
      return wire::RankEnded{by.number};
    case wire::StopCause::lost:
      return wire::ServerLoss{by.text};
    case wire::StopCause::hang:
      return wire::Hang{by.number};
    case wire::StopCause::user:
    case wire::StopCause::launch:
      break;
  }
  return std::nullopt;
}

}  // namespace remote::agent
