#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "agent/job/backend.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/slurm/tools.hpp"

namespace remote::agent {

// Stops Slurm jobs. Each job counts as one process.
class SlurmStopper : public Stopper {
 public:
  SlurmStopper(std::vector<StopTarget*> targets, SlurmTools& tools, SlurmQueue& queue)
      : targets_(std::move(targets)), tools_(tools), queue_(queue) {}

  Remains look(bool quick) override;
  // Signals the batch scripts and all steps. Removes waiting jobs from the queue.
  void signal(int number) override;
  // The nodes check only occasionally whether killed processes are gone.
  std::chrono::milliseconds patience_after_kill() const override { return std::chrono::seconds(25); }
  std::vector<wire::Survivor> survivors(const std::string& id) const override;
  std::vector<wire::Survivor> suspects(const std::string& /*id*/) override { return {}; }

 private:
  // A queued or running job.
  struct Member {
    StopTarget* target = nullptr;
    std::string number;  // "" if it is unknown, because Slurm does not answer
    SlurmKind kind = SlurmKind::running;
  };
  struct Sent {
    int signal = 0;
    SlurmKind kind = SlurmKind::running;

    friend bool operator==(const Sent&, const Sent&) = default;
  };

  bool send(int signal, std::span<const Member> members,
            const std::vector<std::vector<std::string>>& commands);

  std::vector<StopTarget*> targets_;
  SlurmTools& tools_;
  SlurmQueue& queue_;
  std::vector<Member> members_;
  std::map<std::string, Member> known_;  // by id, as last seen
  std::map<std::string, Sent> sent_;     // by id
};

}  // namespace remote::agent
