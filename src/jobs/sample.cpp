#include "jobs/sample.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "jobs/ask.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {

Sample Sampler::take(Store& store, const RemoteFolder& folder, const std::string& prologue,
                     const std::vector<Job>& jobs, std::chrono::milliseconds patience) {
  constexpr std::size_t longest_line = 400;
  servers::FactsRequest load = servers::load_request(folder.project, lacks_gpus_ ? "" : prologue);
  load.timeout = std::chrono::ceil<std::chrono::seconds>(patience);
  if (!agent_) {
    agent_.emplace(connection_, cancel_);
  }
  Sample sample{{servers::ask_facts(*agent_, load), {}}, {}};
  lacks_gpus_ = sample.facts.facts.gpus.tools.empty();
  StateQuestion question{.folder = folder, .ids = {}};
  std::ranges::transform(jobs, std::back_inserter(question.ids), &Job::id);
  question.last_lines = true;
  question.timeout = patience;
  const ExactInstant asked = now_milliseconds();
  StateAnswer answer;
  if (!jobs.empty()) {
    answer = ask_state(*agent_, question);
  }
  const ExactInstant answered = now_milliseconds();
  if (sample.facts.has_leases) {
    servers::AgentQuestion question = servers::leases_question(std::nullopt);
    question.timeout = patience;
    sample.facts.leases = servers::take_reply<wire::LeasesReply>(agent_->ask(question));
  }
  std::vector<Job> changed;
  for (const Job& job : jobs) {
    JobSample& one = sample.jobs.emplace_back(JobSample{job});
    if (const wire::JobReport* report = answer.find(job.id)) {
      const Clocks clocks = clocks_of(answer.time.value(), asked, answered);
      one.job = apply_status(job, *report, clocks, Starter::alive);
      one.last_line = report->last_line.value_or("").substr(0, longest_line);
      Job same_moment = one.job;
      same_moment.checked_at = job.checked_at;
      same_moment.waits = job.waits;  // not stored in records
      if (same_moment != job) {
        changed.push_back(one.job);
      }
    }
  }
  if (const auto unsaved = save(store, changed)) {  // a full disk does not mean that the server failed
    log_info(connection_.server(), "{}", unsaved->message());
  }
  return sample;
}

}  // namespace remote::jobs
