#include "jobs/from_wire.hpp"

#include <fmt/format.h>

namespace remote::jobs {
namespace {

using Kind = JobReason::Kind;

Instant to_second(wire::Moment moment) {
  return std::chrono::floor<std::chrono::seconds>(to_instant(moment));
}

std::string describe_process(const wire::Survivor& survivor) {
  return fmt::format("pid {} ({}, user {}, state {})", survivor.pid.value_or(0), survivor.name,
                     survivor.user.empty() ? "?" : survivor.user,
                     survivor.state.empty() ? "?" : survivor.state);
}

}  // namespace

wire::ProcessEnd to_process_end(const ExitStatus& status) {
  const std::optional<int> signal = status.signal();
  return signal ? wire::ProcessEnd::signalled(*signal) : wire::ProcessEnd::exited(status.code().value_or(0));
}

wire::JobsPlace to_place(const RemoteFolder& folder) {
  return {folder.project, folder.jobs_folder};
}

JobReason to_reason(const wire::StoppedBy& by) {
  switch (by.cause) {
    case wire::StopCause::rank:
      return {.kind = Kind::after_rank, .number = by.number};
    case wire::StopCause::lost:
      return {.kind = Kind::after_loss, .text = by.text};
    case wire::StopCause::hang:
      return {.kind = Kind::after_hang, .number = by.number};
    case wire::StopCause::launch:
      return {.kind = Kind::by_launch};
    case wire::StopCause::user:
      break;
  }
  return {.kind = Kind::by_user, .text = by.text};
}

wire::StoppedBy to_stopped_by(const JobReason& reason) {
  using enum wire::StopCause;
  switch (reason.kind) {
    case Kind::after_rank:
      return {.cause = rank, .number = reason.number};
    case Kind::after_loss:
      return {.cause = lost, .text = wire::to_line(reason.text, 1000)};
    case Kind::after_hang:
      return {.cause = hang, .number = reason.number};
    case Kind::by_launch:
      return {.cause = launch};
    default:
      return {.cause = user, .text = wire::to_line(reason.text, 1000)};
  }
}

JobReason to_reason(const wire::LifelineTrouble& trouble) {
  switch (trouble.state) {
    case wire::LifelineState::missing:
      return {.kind = Kind::no_lifeline, .text = trouble.reason};
    case wire::LifelineState::dead:
      return {.kind = Kind::lifeline_dead, .text = trouble.reason};
    case wire::LifelineState::restarted:
      break;
  }
  return {.kind = Kind::lifeline_restarted};
}

Attempt to_attempt(const wire::AttemptRecord& record) {
  Attempt attempt;
  attempt.number = record.number;
  attempt.began_at = to_second(record.began_at);
  attempt.failed_at = to_second(record.failed_at);
  attempt.next_at = to_second(record.next_at);
  attempt.cause = record.cause;
  attempt.rank = record.rank;
  attempt.server = record.server;
  attempt.left_out = record.left_out;
  attempt.without = record.without;
  if (record.end) {
    attempt.result = record.end->status();
  }
  return attempt;
}

Hung to_hung(const wire::HangRecord& record) {
  Hung hung{.at = to_second(record.at), .stood = record.stood};
  if (record.moved_at) {
    hung.moved_at = to_second(*record.moved_at);
  }
  return hung;
}

std::string describe(const wire::Survivor& survivor) {
  if (!survivor.pid) {
    return survivor.name;
  }
  return survivor.holds_gpu_memory
             ? fmt::format("pid {} (gone, but its GPU memory is still held)", *survivor.pid)
             : describe_process(survivor);
}

std::string describe_suspect(const wire::Survivor& survivor) {
  return describe_process(survivor) +
         ": its files may not be read, but it began while the job ran, and has no parent";
}

std::vector<wire::RestartOn> to_restart_on(const std::vector<RestartCause>& causes) {
  std::vector<wire::RestartOn> all;
  for (const RestartCause cause : causes) {
    switch (cause) {
      case RestartCause::exit:
        all.push_back(wire::RestartOn::exit);
        break;
      case RestartCause::signal:
        all.push_back(wire::RestartOn::signal);
        break;
      case RestartCause::oom:
        all.push_back(wire::RestartOn::out_of_memory);
        break;
      case RestartCause::lost:
      case RestartCause::lifeline:
        all.push_back(wire::RestartOn::lost);
        break;
      case RestartCause::hang:
        all.push_back(wire::RestartOn::hang);
        break;
    }
  }
  return all;
}

wire::HangResponse to_hang_response(OnHang action) {
  return action == OnHang::kill      ? wire::HangResponse::end
         : action == OnHang::restart ? wire::HangResponse::restart
                                     : wire::HangResponse::leave;
}

}  // namespace remote::jobs
