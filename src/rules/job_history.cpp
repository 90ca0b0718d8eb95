#include "rules/job_history.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace remote::rules {
namespace {

struct Stop {
  wire::StopRequested request;
  bool is_finished = false;
  bool had_no_effect = false;
};

struct Fold {
  JobHistory history{};
  std::vector<Stop> stops{};

  Stop* find_stop(wire::Moment at, const wire::RecordedProcess& stopper) {
    const auto found = std::find_if(stops.begin(), stops.end(), [&](const Stop& stop) {
      return stop.request.stop.at == at && stop.request.stopper == stopper;
    });
    return found != stops.end() ? &*found : nullptr;
  }
  void finish() {
    for (const Stop& stop : stops) {
      if (!stop.had_no_effect && !history.stop) {
        history.stop = stop.request.stop;
      }
      if (!stop.is_finished && stop.request.records_end) {
        history.stoppers.push_back(stop.request.stopper);
      }
    }
  }

  void operator()(const wire::JobStarted& entry) { history.started_at = entry.at; }
  void operator()(const wire::JobRestarted& /*entry*/) {
    history.end.reset();
    history.never_starts_since.reset();
    history.was_out_of_memory = false;
    history.disk = FolderFlaw::none;
  }
  void operator()(const wire::AttemptEnded& entry) { history.last_attempt = entry; }
  void operator()(const wire::RestartRefused& entry) { history.no_restart = entry.why; }
  void operator()(const wire::OutOfMemory& /*entry*/) { history.was_out_of_memory = true; }
  void operator()(const wire::DiskRefused& entry) { history.disk = entry.flaw; }
  // The process that waited for the job has the most reliable information.
  void operator()(const wire::JobEnded& entry) {
    history.end = entry.end;
    history.never_starts_since.reset();
  }
  void operator()(const wire::JobFoundEnded& entry) {
    if (!history.has_ended()) {
      history.end = entry.end;
    }
  }
  void operator()(const wire::JobNeverStarts& entry) {
    if (!history.has_ended()) {
      history.never_starts_since = entry.at;
    }
  }
  void operator()(const wire::StopRequested& entry) {
    if (find_stop(entry.stop.at, entry.stopper) == nullptr) {
      stops.push_back({.request = entry});
    }
  }
  void operator()(const wire::StopFinished& entry) {
    if (Stop* stop = find_stop(entry.requested_at, entry.stopper)) {
      stop->is_finished = true;
      stop->had_no_effect = entry.had_no_effect;
    }
    history.survivors = entry.survivors;
  }
};

}  // namespace

JobHistory fold(std::span<const wire::JobEntry> entries) {
  Fold state;
  for (const wire::JobEntry& entry : entries) {
    std::visit(state, entry);
  }
  state.finish();
  return std::move(state.history);
}

}  // namespace remote::rules
