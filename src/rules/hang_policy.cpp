#include "rules/hang_policy.hpp"

#include <algorithm>
#include <cmath>

namespace remote::rules {
namespace {

constexpr double busy_processors = 0.03;  // a job that uses less processor time is idle
constexpr double few_ticks = 2;           // so is one that uses no more than this between two samples
constexpr Seconds evidence_time{90};      // the longest time to wait for the servers' evidence

}  // namespace

void StillnessMeter::add(std::map<std::string, JobSample> jobs, Seconds now) {
  const Seconds passed = last_ ? std::min(now - *last_, longest_) : Seconds(0);
  last_ = now;
  const auto same_id = [](const auto& one, const auto& other) { return one.first == other.first; };
  bool wrote = !std::ranges::equal(jobs, before_, same_id);
  bool worked = wrote;
  for (const auto& [id, sample] : jobs) {
    const auto found = before_.find(id);
    const JobSample& old = found == before_.end() ? sample : found->second;
    wrote = wrote || sample.in_debugger || sample.output_sizes != old.output_sizes;
    double used = 0;
    for (const auto& [process, ticks] : sample.ticks) {
      const auto before = old.ticks.find(process);
      const std::uint64_t start = before == old.ticks.end() ? 0 : before->second;
      used += ticks > start ? static_cast<double>(ticks - start) : 0;
    }
    worked = worked || used > std::max(few_ticks, busy_processors * 100 * passed.count());
  }
  before_ = std::move(jobs);
  silent_ = wrote ? Seconds(0) : silent_ + passed;
  idle_ = worked ? Seconds(0) : idle_ + passed;
}

HangPolicy::HangPolicy(Seconds limit, HangAction action, const LaunchPolicy& launch, std::string own,
                       bool on_record, Seconds now, HangActs& acts)
    : limit_(limit),
      action_(action),
      every_(std::min(Seconds(5), limit / 6)),
      launch_(launch),
      own_(std::move(own)),
      acts_(acts),
      on_record_(on_record),
      since_(now),
      number_(static_cast<int>(std::fmod(now.count() * 1000, 1000000))) {}

void HangPolicy::report(const std::optional<StillnessMeter>& meter, Seconds now) {
  Report report{std::nullopt, Seconds(0), now};
  if (meter) {
    report.silent = meter->silent();
    report.idle = meter->idle();
  }
  if (launch_.is_coordinator()) {
    reports_[own_] = report;
  } else if (meter) {
    acts_.broadcast(wire::Stillness{report.silent->count(), report.idle.count()});
  } else {
    acts_.broadcast(wire::Stillness{});
  }
}

void HangPolicy::note_evidence(int number, bool all_wait) {
  if (!launch_.is_coordinator()) {
    acts_.broadcast(wire::EvidenceTaken{number, all_wait});
  } else if (number == number_ && answers_) {
    (*answers_)[own_] = all_wait;
  }
}

void HangPolicy::hear(const std::string& server, const wire::LinkMessage& message, Seconds now) {
  if (!launch_.is_coordinator()) {
    if (const auto* take = std::get_if<wire::TakeEvidence>(&message)) {
      acts_.take_evidence(take->number);
    } else if (const auto* hangs = std::get_if<wire::Hangs>(&message)) {
      acts_.keep_evidence(hangs->seconds);
    } else if (std::holds_alternative<wire::DropEvidence>(message)) {
      acts_.drop_evidence();
    } else if (std::holds_alternative<wire::Continued>(message)) {
      acts_.note_continued();
    }
  } else if (const auto* still = std::get_if<wire::Stillness>(&message)) {
    Report report{std::nullopt, Seconds(still->idle_seconds.value_or(0)), now};
    if (still->silent_seconds) {
      report.silent = Seconds(*still->silent_seconds);
    }
    reports_[server] = report;
  } else if (const auto* taken = std::get_if<wire::EvidenceTaken>(&message);
             taken != nullptr && answers_ && taken->number == number_) {
    (*answers_)[server] = taken->all_wait;
  }
}

// The shortest silence and the shortest idleness of all ranks. nullopt if none is running, or if a server has
// not reported.
std::optional<HangPolicy::Least> HangPolicy::find_least(Seconds now) const {
  std::optional<Least> least;
  for (const std::string& server : launch_.present()) {
    const auto found = reports_.find(server);
    if (found == reports_.end() || now - found->second.when > 5 * every_ + Seconds(5)) {
      return std::nullopt;
    }
    const Report& report = found->second;
    if (report.silent) {
      const Least before = least.value_or(Least{now - since_, now - since_});
      least = Least{std::min(before.silent, *report.silent), std::min(before.idle, report.idle)};
    }
  }
  return least;
}

void HangPolicy::tick(Seconds now) {
  if (!launch_.is_coordinator()) {
    return;
  }
  if (!launch_.should_watch()) {
    since_ = now;
    answers_.reset();
    return;
  }
  const std::optional<Least> least = find_least(now);
  if (on_record_) {
    if (least && (least->silent < limit_ || (by_idle_ && least->idle < limit_))) {
      on_record_ = false;
      acts_.broadcast(wire::Continued{});
      acts_.note_continued();
    }
  } else if (answers_) {
    const std::vector<std::string> present = launch_.present();
    const bool all =
        std::ranges::all_of(present, [&](const std::string& server) { return answers_->contains(server); });
    if (all || now >= deadline_) {
      decide(least, now);
    }
  } else if (least && least->silent >= limit_) {
    by_idle_ = least->idle >= limit_;
    if (by_idle_ || now >= next_question_) {
      ++number_;
      answers_.emplace();
      deadline_ = now + evidence_time;
      acts_.broadcast(wire::TakeEvidence{number_});
      acts_.take_evidence(number_);
    }
  }
}

void HangPolicy::decide(const std::optional<Least>& least, Seconds now) {
  const std::vector<std::string> present = launch_.present();
  const bool hangs = by_idle_ || std::ranges::all_of(present, [&](const std::string& server) {
                       const auto found = answers_->find(server);
                       return found != answers_->end() && found->second;
                     });
  answers_.reset();
  if (!hangs || !least || least->silent < limit_) {
    next_question_ = now + limit_;
    acts_.broadcast(wire::DropEvidence{});
    acts_.drop_evidence();
    return;
  }
  const wire::Hang hang{
      static_cast<int>((by_idle_ ? std::min(least->silent, least->idle) : least->silent).count())};
  on_record_ = true;
  acts_.broadcast(wire::Hangs{hang.seconds});
  acts_.keep_evidence(hang.seconds);
  acts_.end(action_, hang);
}

}  // namespace remote::rules
