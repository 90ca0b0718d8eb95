#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <remote/history.hpp>
#include <remote/job.hpp>

// The only list of a job's fields. job.json and the index are written and read by visitors of this list. Its
// order is that of `job-list --json` and of the columns of the index. A visitor's field() depends on the type
// of the field; an int has the given minimum. Fields that may be unknown are std::optional.

namespace remote::jobs {

// The name of a kind in job.json and in the index: "after_rank".
std::string_view kind_name(JobReason::Kind kind);
std::optional<JobReason::Kind> parse_kind(std::string_view name);

template <typename AnyReason, typename Visitor>
void visit_fields_of_reason(AnyReason& reason, Visitor& visit) {
  visit.field("kind", reason.kind);
  visit.field("number", reason.number, std::numeric_limits<int>::min());  // a server may report any number
  visit.field("text", reason.text);
  visit.result(reason.result);
  // last_state is only for jobs whose server does not answer, which are never stored.
}

template <typename AnyUsage, typename Visitor>
void visit_fields_of_usage(AnyUsage& usage, Visitor& visit) {
  visit.field("cpus", usage.cpus);
  visit.field("cpu_percent", usage.cpu_percent);
  visit.field("memory_mib", usage.memory_mib);
  visit.field("requested_mib", usage.requested_mib);
}

template <typename AnyAttempt, typename Visitor>
void visit_fields_of_attempt(AnyAttempt& attempt, Visitor& visit) {
  visit.field("number", attempt.number, 1);
  visit.field("began_at", attempt.began_at);
  visit.field("failed_at", attempt.failed_at);
  visit.field("next_at", attempt.next_at);
  visit.field("cause", attempt.cause);
  visit.field("rank", attempt.rank, 0);
  visit.field("server", attempt.server);
  visit.result(attempt.result);
  visit.field("left_out", attempt.left_out);
  visit.field("without", attempt.without);
}

template <typename AnyPoint, typename Visitor>
void visit_fields_of_point(AnyPoint& point, Visitor& visit) {
  visit.field("number", point.number);
  visit.values("values", point.values);
  visit.mark("waiting", point.waiting);
  visit.field("numbers", point.numbers);
}

template <typename AnyJob, typename Visitor>
requires std::is_same_v<std::remove_const_t<AnyJob>, Job>
void visit_fields(AnyJob& job, Visitor& visit) {
  visit.field("key", job.key, 1);
  visit.field("id", job.id);
  visit.field("server", job.server);
  visit.field("state", job.state);
  visit.field("processes_left", job.leftovers, 0);
  visit.field("pid", job.pid, 1);
  visit.result(job.result);
  visit.reason("reason", job.reason);
  visit.field("tags", job.tags);
  visit.field("command", job.command);
  visit.field("launch", job.launch);
  visit.field("rank", job.rank, 0);
  visit.field("world_size", job.world_size, 1);
  visit.field("created_at", job.created_at);
  visit.field("started_at", job.started_at);
  visit.field("ended_at", job.ended_at);
  visit.field("checked_at", job.checked_at);
  visit.field("hidden", job.hidden);
  visit.folder("remote_folder", job);
  visit.milliseconds("failed_at_ms", job.failed_at);
  visit.mark("after_peer", job.after_peer);
  visit.field("ranks", job.ranks, 1);
  visit.mark("labelled", job.labelled);
  visit.field("needed", job.needed, 1);
  visit.mark("may_restart", job.may_restart);
  visit.usage("usage", job.usage);
  visit.field("hung", job.hung);
  visit.field("backend", job.backend);
  visit.attempts("attempts", job.attempts);
  visit.no_restart("no_restart", job.no_restart);
  visit.mark("spare", job.spare);
  visit.point("point", job.point);
  visit.recorded("made_in", job.made_in);
  visit.recorded("machine", job.machine);
}

// The first five columns are read like those of a job (Index::Row).
template <typename AnyLaunch, typename Visitor>
requires std::is_same_v<std::remove_const_t<AnyLaunch>, LaunchSummary>
void visit_fields(AnyLaunch& launch, Visitor& visit) {
  visit.field("key", launch.first_key, 0);
  visit.field("id", launch.id);
  visit.field("name", launch.name);
  visit.field("state", launch.state);
  visit.field("failed_rank", launch.failed_rank, 0);
  visit.field("last_key", launch.last_key, 0);
  visit.field("note", launch.note);
  visit.field("tags", launch.tags);
  visit.field("command", launch.command);
  visit.field("servers", launch.servers);
  visit.field("ranks", launch.ranks, 0);
  visit.result(launch.result);
  visit.field("commit", launch.commit);
  visit.field("clean", launch.clean);
  visit.field("began_at", launch.began_at);
  visit.field("ended_at", launch.ended_at);
  visit.field("numbers", launch.numbers);
}

}  // namespace remote::jobs
