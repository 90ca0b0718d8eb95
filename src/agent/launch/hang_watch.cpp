#include "agent/launch/hang_watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/host/background.hpp"
#include "agent/host/descriptor.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/debugger_waits.hpp"
#include "agent/job/job_files.hpp"
#include "agent/launch/output_sizes.hpp"
#include "agent/launch/thread_task.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

using Samples = std::map<std::string, rules::JobSample>;

// Selects jobs that have started, that is, neither spares nor jobs that wait for a lease.
std::vector<std::string> select_begun(const JobsFolder& folder, std::vector<std::string> ids) {
  std::erase_if(ids, [&](const std::string& id) {
    return !exists(folder.jobs / id / "pid") || exists(folder.jobs / id / "queue");
  });
  return ids;
}

// Tells processes apart that have the same pid one after the other. The kernel's largest pid has 22 bits.
std::uint64_t number_process(ProcessId id) {
  return id.start << 22U | static_cast<std::uint64_t>(id.pid);
}

void add_ticks(const Host& host, Samples& samples) {
  for (const auto& [pid, job] : find_job_processes(host)) {
    const auto sample = samples.find(job);
    const auto process = sample == samples.end() ? std::nullopt : read_process(host, pid);
    if (process) {
      sample->second.ticks[number_process(process->id)] = process->ticks;
    }
  }
}

// Returns nullopt if a job was removed.
std::optional<Samples> take_samples(const Host& host, const JobsFolder& folder,
                                    const std::vector<std::string>& ids, OutputSizes& sizes) {
  Samples samples;
  for (const std::string& id : ids) {
    samples.try_emplace(id);
  }
  if (!samples.empty()) {
    add_ticks(host, samples);
  }
  for (auto& [id, sample] : samples) {
    const Path job = folder.jobs / id;
    for (const char* name : {"job.out", "job.err"}) {
      const auto size = sizes.measure(job / name);
      if (!size) {
        return std::nullopt;
      }
      sample.output_sizes.push_back(*size);
    }
    sample.in_debugger = !find_debugger_waits(host, {.id = id, .folder = job}).empty();
  }
  return samples;
}

rules::HangAction choose_action(wire::HangResponse response) {
  return response == wire::HangResponse::end       ? rules::HangAction::end
         : response == wire::HangResponse::restart ? rules::HangAction::restart
                                                   : rules::HangAction::report;
}

}  // namespace

struct HangWatch::Impl final : rules::HangActs {
  Impl(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec, const EvidenceTaker& taker,
       const rules::LaunchPolicy& launch, rules::Seconds now, HangWatchActs& acts);
  ~Impl() override { *host_.cancelled = true; }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int fd() const { return wake_.get(); }
  void step(rules::Seconds now);

  void broadcast(const wire::LinkMessage& message) override { acts_.broadcast(message); }
  void take_evidence(int number) override;
  void keep_evidence(int seconds) override;
  void drop_evidence() override;
  void note_continued() override;
  void end(rules::HangAction action, const wire::Hang& hang) override;

 private:
  enum class Fate { unknown, keep, drop };
  // The evidence that the thread has collected.
  struct Taken {
    int number = 0;
    bool all_wait = false;
    Path file;  // the evidence is in `file`.new; "": nothing to keep
  };

  std::vector<std::string> list_unfinished() const;
  void start_sample();
  // Runs in a thread.
  void collect(const std::vector<std::string>& unfinished);
  // Keeps or drops the evidence, once it exists and the decision is made.
  void settle();
  Path first_folder() const { return folder_.jobs / spec_.jobs.front().id; }

  Host host_;  // a copy: cancelling it kills the process that takes evidence
  const JobsFolder& folder_;
  const wire::LaunchSpec& spec_;
  EvidenceTaker taker_;
  const rules::LaunchPolicy& launch_;
  HangWatchActs& acts_;

 public:
  rules::HangPolicy policy;

 private:
  std::optional<rules::StillnessMeter> meter_;
  rules::Seconds next_sample_{0};
  std::optional<Samples> samples_;  // written by the task while it runs
  OutputSizes sizes_;               // used by the sampling thread
  Taken taken_;
  Path file_;  // existing evidence
  Fate fate_ = Fate::unknown;
  Descriptor wake_;
  ThreadTask
      sampling_;  // must be the last members, so that their threads end before the others are destroyed
  ThreadTask taking_;
};

HangWatch::Impl::Impl(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
                      const EvidenceTaker& taker, const rules::LaunchPolicy& launch, rules::Seconds now,
                      HangWatchActs& acts)
    : host_(host),
      folder_(folder),
      spec_(spec),
      taker_(taker),
      launch_(launch),
      acts_(acts),
      policy(rules::Seconds(spec.hang->seconds), choose_action(spec.hang->response), launch, spec.server,
             read_job_words(first_folder() / "hung").size() == 2, now, *this),
      meter_(policy.every()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sampling_(wake_.get()),
      taking_(wake_.get()) {
  host_.cancelled = std::make_shared<std::atomic<bool>>(false);
}

void HangWatch::Impl::step(rules::Seconds now) {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  if (sampling_.finish() && samples_) {
    const bool runs = !samples_->empty();
    meter_->add(std::move(*samples_), now);
    if (runs) {
      policy.report(meter_, now);
    } else {
      policy.report(std::nullopt, now);
    }
  }
  if (!sampling_.is_running() && now >= next_sample_) {
    next_sample_ = now + policy.every();
    start_sample();
  }
  if (taking_.finish()) {
    file_ = taken_.file;
    settle();
    policy.note_evidence(taken_.number, taken_.all_wait);
  }
  policy.tick(now);
}

std::vector<std::string> HangWatch::Impl::list_unfinished() const {
  std::vector<std::string> ids;
  for (const rules::LaunchJob& job : launch_.jobs()) {
    if (!job.ended) {
      ids.push_back(job.id);
    }
  }
  return ids;
}

void HangWatch::Impl::start_sample() {
  samples_.reset();
  sampling_.start([this, ids = list_unfinished()] {
    samples_ = take_samples(host_, folder_, select_begun(folder_, ids), sizes_);
  });
}

void HangWatch::Impl::take_evidence(int number) {
  fate_ = Fate::unknown;
  std::vector<std::string> ids = list_unfinished();
  if (ids.empty()) {
    policy.note_evidence(number, true);
  } else if (!taking_.is_running()) {
    taken_ = {.number = number, .all_wait = false, .file = {}};
    if (!taking_.start([this, ids = std::move(ids)] { collect(ids); })) {
      policy.note_evidence(number, false);
    }
  }
}

void HangWatch::Impl::collect(const std::vector<std::string>& unfinished) {
  const std::vector<std::string> ids = select_begun(folder_, unfinished);
  if (ids.empty()) {
    taken_.all_wait = true;
    return;
  }
  const std::chrono::seconds between(std::clamp(spec_.hang->seconds / 3, 1, 10));
  const Evidence evidence = agent::take_evidence(host_, taker_, between, ids);
  const Path file = folder_.jobs / ids.front() / "why";
  const Path part = file.string() + ".new";
  // O_NONBLOCK, because the job can create a FIFO with this name.
  if (!write_job_file(part, evidence.text, O_TRUNC | O_NONBLOCK)) {
    ::unlink(part.c_str());
    return;
  }
  taken_.file = file;
  taken_.all_wait = evidence.all_wait;
}

void HangWatch::Impl::settle() {
  if (file_.empty() || taking_.is_running() || fate_ == Fate::unknown) {
    return;
  }
  const Path part = file_.string() + ".new";
  if (fate_ == Fate::keep) {
    ::rename(part.c_str(), file_.c_str());
  } else {
    ::unlink(part.c_str());
  }
  file_ = {};
}

void HangWatch::Impl::keep_evidence(int seconds) {
  fate_ = Fate::keep;
  settle();
  acts_.write_status("hung", text::format("{} {}", read_wall_clock().count(), seconds));
}

void HangWatch::Impl::drop_evidence() {
  fate_ = Fate::drop;
  settle();
}

void HangWatch::Impl::note_continued() {
  const std::vector<std::string> words = read_job_words(first_folder() / "hung");
  if (words.size() == 2) {
    acts_.write_status("hung", text::format("{} {} {}", words[0], words[1], read_wall_clock().count()));
  }
}

void HangWatch::Impl::end(rules::HangAction action, const wire::Hang& hang) {
  const bool restarts = action == rules::HangAction::restart;
  if (action != rules::HangAction::report) {
    acts_.end_hung(hang, restarts);
  }
  // If the launch is stopped, the notification about its end mentions the hang.
  if (spec_.notifies && !launch_.reason()) {
    acts_.notify_hang(hang, restarts);
  }
}

HangWatch::HangWatch(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
                     const EvidenceTaker& taker, const rules::LaunchPolicy& launch, rules::Seconds now,
                     HangWatchActs& acts)
    : impl_(std::make_unique<Impl>(host, folder, spec, taker, launch, now, acts)) {}

HangWatch::~HangWatch() = default;

int HangWatch::fd() const {
  return impl_->fd();
}

rules::Seconds HangWatch::every() const {
  return impl_->policy.every();
}

void HangWatch::step(rules::Seconds now) {
  impl_->step(now);
}

void HangWatch::hear(const std::string& server, const wire::LinkMessage& message, rules::Seconds now) {
  impl_->policy.hear(server, message, now);
}

}  // namespace remote::agent
