#include "jobs/sample.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {

void SampleAnswer::take(servers::AnswerLine& line) {
  if (servers::FactsAnswer::takes(line.kind())) {
    facts.take(line);
  } else if (line.kind() == "last") {
    const auto id = JobId::parse(line.word());
    const std::string_view text = line.rest();
    if (!id || !text.starts_with('|') || text.size() > 1000) {
      line.refuse("a last line is wrong");
    }
    last_lines.emplace_back(*id, text.substr(1));
  } else {
    status.take(line);
  }
}

void SampleAnswer::check() {
  facts.check();
  if (with_jobs) {
    status.check();
  }
}

SampleAnswer Sampler::ask(const servers::Action<SampleAnswer>& action, bool with_jobs,
                          std::chrono::milliseconds patience) {
  answer_ = {};
  answer_.with_jobs = with_jobs;
  reader_ = servers::reader_into(answer_);
  const std::string request = action.script.text() + ".each\n";
  if (talk_ && request == request_) {
    talk_->say("\n");
  } else {
    request_ = request;
    talk_.emplace(connection_, action.what, request, reader_, cancel_);
  }
  if (!talk_->serve([this] { return reader_.closed(); }, patience)) {
    reader_.finish_with_closing_line();
  }
  servers::finish_answer(answer_, reader_, {});
  return answer_;
}

Sample Sampler::take(Store& store, const RemoteFolder& folder, const std::vector<Job>& jobs,
                     std::chrono::milliseconds patience) {
  std::vector<JobId> ids;
  std::ranges::transform(jobs, std::back_inserter(ids), &Job::id);
  const ExactInstant asked = now_milliseconds();
  const SampleAnswer answer = ask(sample_action(folder, ids), !jobs.empty(), patience);
  Sample sample{answer.facts, {}};
  std::vector<Job> changed;
  for (const Job& job : jobs) {
    const auto reply = std::ranges::find(answer.status.jobs, job.id, &StatusReply::id);
    JobSample& one = sample.jobs.emplace_back(JobSample{job});
    if (reply != answer.status.jobs.end()) {
      one.job =
          apply_status(job, *reply, clocks_of(answer.status, asked, now_milliseconds()), Starter::alive);
      Job same_moment = one.job;
      same_moment.checked_at = job.checked_at;
      same_moment.waits = job.waits;  // which no record has
      if (same_moment != job) {
        changed.push_back(one.job);
      }
    }
    const auto line = std::ranges::find(answer.last_lines, job.id, &std::pair<JobId, std::string>::first);
    if (line != answer.last_lines.end()) {
      one.last_line = line->second;
    }
  }
  if (const auto unsaved = save(store, changed)) {  // a disk that is full says nothing about the server
    log_info(connection_.server(), "{}", unsaved->message());
  }
  return sample;
}

}  // namespace remote::jobs
