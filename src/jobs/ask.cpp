#include "jobs/ask.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_ids.hpp"

namespace remote::jobs {
namespace {

using std::chrono::seconds;

[[noreturn]] void refuse(const char* why) {
  throw Error("the server's answer is not understood", why).mended_by(Remedy::tell_more);
}

// The ids that may be in an answer.
class Asked {
 public:
  explicit Asked(const std::vector<JobId>& ids) : ids_(ids.begin(), ids.end()) {}

  // nullopt if the job was not in the question.
  std::optional<JobId> find(const std::string& text) const {
    const std::optional<JobId> id = JobId::parse(text);
    return id && ids_.contains(*id) ? id : std::nullopt;
  }
  template <typename Entry>
  void add(std::vector<Entry> entries, std::map<JobId, Entry>& to) const {
    for (Entry& entry : entries) {
      if (const auto id = find(entry.id)) {
        to.try_emplace(*id, std::move(entry));
      }
    }
  }

 private:
  std::set<JobId> ids_;
};

void check(const wire::JobReport& report) {
  using enum wire::JobPhase;
  if (report.phase == ended && !report.end) {
    refuse("the end of a job is missing");
  }
  if (report.phase != ended && (report.usage || report.usage_asked)) {
    refuse("a job that has not ended has a usage");
  }
  if (report.phase != running && !report.waits.empty()) {
    refuse("a job that does not run waits in a debugger");
  }
}

// The first message arrives soon after the server read its clock; later ones may take long.
void add_time(std::optional<ServerTime>& time, wire::Moment now) {
  if (!time) {
    time = ServerTime{to_instant(now), now_milliseconds()};
  }
}

void check_time(const std::optional<ServerTime>& time) {
  if (!time) {
    refuse("its clock is missing");
  }
}

void add_reports(StateAnswer& answer, const Asked& asked, wire::Moment now,
                 std::vector<wire::JobReport> reports) {
  add_time(answer.time, now);
  std::ranges::for_each(reports, check);
  asked.add(std::move(reports), answer.jobs);
}

void check(const wire::StopResult& result) {
  if (result.outcome != KillResult::Entry::Outcome::survivors && !result.survivors.empty()) {
    refuse("a stopped job has survivors");
  }
}

}  // namespace

const wire::JobReport* StateAnswer::find(const JobId& id) const {
  const auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

StateAnswer ask_state(const AnyAgent& agent, const StateQuestion& state) {
  servers::AgentQuestion question;
  question.what = "state of " + counted(state.ids.size(), "job");
  question.request = wire::StateRequest{to_place(state.folder), to_texts(state.ids), to_texts(state.claim),
                                        state.await_lifeline, state.last_lines};
  question.timeout = state.timeout;
  question.silence = state.silence;
  StateAnswer answer;
  const Asked asked(state.ids);
  try {
    agent.ask(question, [&](wire::Reply reply) {
      auto part = servers::take_reply<wire::StateReply>(std::move(reply));
      add_reports(answer, asked, part.now, std::move(part.jobs));
    });
  } catch (const Error& error) {
    if (!state.keeps_partial) {
      throw;
    }
    answer.failure.emplace(error);
    return answer;
  }
  check_time(answer.time);
  return answer;
}

StopAnswer ask_stop(const AnyAgent& agent, const StopQuestion& stop) {
  if (stop.signal < 1 || stop.signal > 64) {
    throw Error::usage("cannot end jobs", fmt::format("there is no signal {}", stop.signal),
                       "give a name such as INT, TERM or KILL, or a number");
  }
  const int grace_s = std::clamp(stop.grace_s, 0, 1'000'000);
  servers::AgentQuestion question;
  question.what = "end of " + counted(stop.ids.size(), "job");
  wire::StopRequest request;
  request.place = to_place(stop.folder);
  request.ids = to_texts(stop.ids);
  request.claim = to_texts(stop.claim);
  request.dead = to_texts(stop.dead);
  request.signal = stop.signal;
  request.grace_s = grace_s;
  request.by = to_stopped_by(stop.by);
  question.request = std::move(request);
  question.timeout = seconds(grace_s + 40 + static_cast<int>(stop.ids.size() / 20));
  StopAnswer answer;
  const Asked asked(stop.ids);
  agent.ask(question, [&](wire::Reply reply) {
    auto part = servers::take_reply<wire::StopReply>(std::move(reply));
    std::ranges::for_each(part.results, [](const wire::StopResult& result) { check(result); });
    asked.add(std::move(part.results), answer.results);
    add_reports(answer.state, asked, part.now, std::move(part.jobs));
  });
  check_time(answer.state.time);
  return answer;
}

CleanAnswer ask_clean(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::AgentQuestion question;
  question.what = "removal of " + counted(ids.size(), "job");
  question.request = wire::CleanRequest{to_place(folder), to_texts(ids)};
  question.timeout = std::chrono::minutes(10);  // deleting terabytes of output takes time
  CleanAnswer answer;
  const Asked asked(ids);
  agent.ask(question, [&](wire::Reply reply) {
    auto part = servers::take_reply<wire::CleanReply>(std::move(reply));
    for (const wire::CleanedJob& job : part.jobs) {
      if (is_removed(job.outcome) != job.reason.empty()) {
        refuse("the reason for a folder is wrong");
      }
    }
    asked.add(std::move(part.jobs), answer);
  });
  return answer;
}

bool is_removed(wire::CleanOutcome outcome) {
  return outcome == wire::CleanOutcome::removed || outcome == wire::CleanOutcome::none;
}

WorkersAnswer ask_workers(const AnyAgent& agent, const RemoteFolder& folder, const JobId& id, int lines) {
  servers::AgentQuestion question;
  question.what = "failed workers of a job";
  question.request = wire::WorkersRequest{to_place(folder), id.text(), lines};
  question.timeout = seconds(5);
  std::optional<ServerTime> time;
  WorkersAnswer answer;
  agent.ask(question, [&](wire::Reply reply) {
    auto part = servers::take_reply<wire::WorkersReply>(std::move(reply));
    add_time(time, part.now);
    for (wire::FailedWorker& worker : part.workers) {
      answer.workers.try_emplace(worker.rank, std::move(worker));
    }
  });
  check_time(time);
  answer.time = *time;
  return answer;
}

std::vector<std::string> ask_lines(const AnyAgent& agent, const LinesQuestion& lines) {
  servers::AgentQuestion question;
  question.what = "last lines of " + counted(lines.ids.size(), "job");
  question.request =
      wire::LinesRequest{to_place(lines.folder), to_texts(lines.ids), lines.files, lines.count};
  question.timeout = seconds(5);
  std::vector<std::string> answer;
  agent.ask(question, [&](wire::Reply reply) {
    auto part = servers::take_reply<wire::LinesReply>(std::move(reply));
    std::ranges::move(part.lines, std::back_inserter(answer));
  });
  return answer;
}

}  // namespace remote::jobs
