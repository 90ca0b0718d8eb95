#pragma once

#include <memory>
#include <string>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "agent/launch/evidence.hpp"
#include "rules/hang_policy.hpp"
#include "wire/launch.hpp"

namespace remote::agent {

// Actions that HangWatch requests.
class HangWatchActs {
 public:
  virtual ~HangWatchActs() = default;
  virtual void broadcast(const wire::LinkMessage& message) = 0;
  virtual void end_hung(const wire::Hang& hang, bool restart) = 0;
  // Notifies the user that the launch hangs but is not stopped (Notifier::start_about_hang()). Must not
  // block.
  virtual void notify_hang(const wire::Hang& hang, bool restarts) = 0;
  // Writes a one-line file to the folder of each job. `line` has no newline.
  virtual void write_status(const std::string& file, const std::string& line) = 0;
};

// Samples the ranks of this server, and collects and keeps the evidence of a hang (`--hang-after`), following
// the decisions of rules::HangPolicy. The evidence is kept in `why` in the folder of the first running job.
// `hung` in all folders records when the hang was detected: MS SECONDS, and a second MS when the launch
// continued.
class HangWatch {
 public:
  // All references must outlive this object. `spec` must have `hang`.
  HangWatch(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
            const EvidenceTaker& taker, const rules::LaunchPolicy& launch, rules::Seconds now,
            HangWatchActs& acts);
  // Stops the process that collects the evidence, and waits for the threads.
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Readable after a thread has taken a sample or collected the evidence. Call step() then, and also once per
  // every().
  int fd() const;
  rules::Seconds every() const;
  void step(rules::Seconds now);
  void hear(const std::string& server, const wire::LinkMessage& message, rules::Seconds now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace remote::agent
