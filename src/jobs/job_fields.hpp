#pragma once

#include <limits>

#include <remote/job.hpp>

// The fields of a job, each named once: job.json and the index are written and read by visitors of this
// table. The order is that of `job-list --json`, and of the columns of the index. A visitor has a function
// for each kind of field, overloaded for fields that may be absent.

namespace remote::jobs {

template <typename AnyReason, typename Visitor>
void visit_fields_of_reason(AnyReason& reason, Visitor& visit) {
  visit.kind("kind", reason.kind);
  visit.number("number", reason.number, std::numeric_limits<int>::min());  // a server may say anything
  visit.text("text", reason.text);
  visit.result(reason.result);
  // last_state is of jobs whose server does not answer, which are never stored
}

template <typename AnyJob, typename Visitor>
void visit_fields(AnyJob& job, Visitor& visit) {
  visit.number("key", job.key, 1);
  visit.id("id", job.id);
  visit.text("server", job.server);
  visit.state("state", job.state);
  visit.number("pid", job.pid, 1);
  visit.result(job.result);
  visit.reason("reason", job.reason);
  visit.texts("tags", job.tags);
  visit.text("command", job.command);
  visit.id("launch", job.launch);
  visit.number("rank", job.rank, 0);
  visit.number("world_size", job.world_size, 1);
  visit.time("created_at", job.created_at);
  visit.time("started_at", job.started_at);
  visit.time("ended_at", job.ended_at);
  visit.time("checked_at", job.checked_at);
  visit.flag("hidden", job.hidden);
  visit.folder("remote_folder", job.remote_folder, job);
  visit.milliseconds("failed_at_ms", job.failed_ms);
}

}  // namespace remote::jobs
