#pragma once

#include <optional>
#include <string>
#include <utility>

#include <remote/exit_status.hpp>
#include <remote/launch.hpp>

#include "wire/jobs.hpp"
#include "wire/start.hpp"

// Common expectations of the agent's answers about jobs.

namespace remote::jobs {

using Phase = wire::JobPhase;
using StopOutcome = KillResult::Entry::Outcome;
using wire::CleanOutcome;
using wire::StartOutcome;

// The user who stops jobs in these tests.
inline const wire::StoppedBy by_ada{.text = "ada@laptop"};

inline wire::StoppedBy after_rank(int rank) {
  return {.cause = wire::StopCause::rank, .number = rank};
}

inline wire::StoppedBy after_loss(std::string server) {
  return {.cause = wire::StopCause::lost, .text = std::move(server)};
}

inline std::optional<ExitStatus> result_of(const wire::JobReport& report) {
  return report.end ? std::optional(report.end->how.status()) : std::nullopt;
}

}  // namespace remote::jobs
