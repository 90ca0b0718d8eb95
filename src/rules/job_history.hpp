#pragma once

#include <optional>
#include <span>
#include <vector>

#include "wire/job_journal.hpp"

namespace remote::rules {

// The state of a job according to its journal.
struct JobHistory {
  std::optional<wire::Moment> started_at;
  std::optional<wire::JobEnd> end;
  std::optional<wire::Moment> never_starts_since;  // at most one of this and `end` is set
  std::optional<wire::AttemptEnded> last_attempt;
  std::optional<NoRestart> no_restart;          // why no other attempt follows the last one
  bool was_out_of_memory = false;               // since the last restart
  FolderFlaw disk = FolderFlaw::none;           // of its folder, since the last restart
  std::optional<wire::StopRecord> stop;         // the first stop that had an effect or is not finished
  std::vector<wire::RecordedProcess> stoppers;  // while any of them is alive, the end has yet to be recorded
  std::vector<wire::RecordedSurvivor> survivors;  // of the last stop

  bool has_ended() const { return end.has_value() || never_starts_since.has_value(); }
  friend bool operator==(const JobHistory&, const JobHistory&) = default;
};

// Entries may be repeated, because part of the fallback folder may be copied twice.
JobHistory fold(std::span<const wire::JobEntry> entries);

}  // namespace remote::rules
