#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rules/launch_policy.hpp"

// Decides when a launch hangs (--hang-after), and what to do (docs/resilience.md).
//
// Each server samples its ranks and reports how long they have been silent (no byte on stdout or stderr) and
// idle (almost no processor time). If all ranks have been silent for long enough, the coordinator asks all
// servers to collect evidence. The launch hangs if all ranks were idle for that long, or if the evidence of
// each server shows that its ranks are only waiting for others. A waiting rank may use a whole processor.

namespace remote::rules {

struct JobSample {
  std::vector<std::uint64_t> output_sizes;
  // Maps processes to processor time, in hundredths of a second. If a pid is reused, the new process has
  // another number.
  std::map<std::uint64_t, std::uint64_t> ticks;
  bool in_debugger = false;  // a rank is waiting in a debugger
  friend bool operator==(const JobSample&, const JobSample&) = default;
};

// Measures how long the ranks of one server have been silent and idle.
class StillnessMeter {
 public:
  // `every`: the time between two samples.
  explicit StillnessMeter(Seconds every) : longest_(3 * every) {}
  // Adds a sample of the running jobs, by id.
  void add(std::map<std::string, JobSample> jobs, Seconds now);
  Seconds silent() const { return silent_; }
  Seconds idle() const { return idle_; }

 private:
  Seconds longest_;  // a longer gap means that this process or its server was paused
  std::optional<Seconds> last_;
  std::map<std::string, JobSample> before_;
  Seconds silent_{0};
  Seconds idle_{0};
};

enum class HangAction { report, end, restart };

class HangActs {
 public:
  virtual ~HangActs() = default;
  virtual void broadcast(const wire::LinkMessage& message) = 0;
  // Starts to collect this server's evidence.
  virtual void take_evidence(int number) = 0;
  virtual void keep_evidence(int seconds) = 0;
  virtual void drop_evidence() = 0;
  // The launch has continued although it was found to hang.
  virtual void note_continued() = 0;
  virtual void end(HangAction action, const wire::Hang& hang) = 0;
};

class HangPolicy {
 public:
  // `on_record`: it is recorded that an earlier supervisor found this launch to hang.
  HangPolicy(Seconds limit, HangAction action, const LaunchPolicy& launch, std::string own, bool on_record,
             Seconds now, HangActs& acts);

  // The time between two samples.
  Seconds every() const { return every_; }
  // Reports the state of this server's ranks; nullopt if none is running.
  void report(const std::optional<StillnessMeter>& meter, Seconds now);
  // This server's evidence is available; `all_wait`: its ranks are only waiting for others.
  void note_evidence(int number, bool all_wait);
  void hear(const std::string& server, const wire::LinkMessage& message, Seconds now);
  void tick(Seconds now);

 private:
  struct Report {
    std::optional<Seconds> silent;
    Seconds idle{0};
    Seconds when{0};
  };
  struct Least {
    Seconds silent;
    Seconds idle;
  };
  std::optional<Least> find_least(Seconds now) const;
  void decide(const std::optional<Least>& least, Seconds now);

  Seconds limit_;
  HangAction action_;
  Seconds every_;
  const LaunchPolicy& launch_;
  std::string own_;
  HangActs& acts_;
  bool on_record_;
  bool by_idle_ = false;
  Seconds since_;  // silence is measured from this time
  std::map<std::string, Report> reports_;
  int number_;  // of the last question, different from those of earlier supervisors
  std::optional<std::map<std::string, bool>>
      answers_;  // server -> whether all its ranks are waiting, while a question is open
  Seconds deadline_{0};
  Seconds next_question_{0};
};

}  // namespace remote::rules
