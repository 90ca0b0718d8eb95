#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/launch/job_looker.hpp"
#include "agent/launch/peers.hpp"
#include "agent/sweep/point_slots.hpp"
#include "agent/sweep/point_starts.hpp"
#include "agent/sweep/sweep_files.hpp"
#include "rules/sweep_policy.hpp"

namespace remote::agent {

// The external actions of a sweep's supervisor, which tests replace.
struct SweepMeans {
  // Starts one job, which inherits the lease (a descriptor, or -1). Any thread. Throws std::runtime_error if
  // nothing was started.
  std::function<wire::StartedJob(const wire::JobsToStart&, int)> start;
  PointSlots::TakeLease take_lease;
  rules::Seconds start_patience{20};  // a start that takes longer continues in the background

  static SweepMeans of(const Host& host, const Path& program, const wire::SweepPoints& points);
};

// Runs a sweep's points on this server and, on the sweep's first server, distributes them. The decisions are
// made in rules/sweep_policy.hpp.
class SweepSupervisor final : public PeersHandler, public rules::SweepTakerActs, public rules::SweepJournal {
 public:
  // `program` is the folder of the server program in .bin. Throws std::runtime_error if the sweep cannot run.
  SweepSupervisor(const Host& host, const JobsFolder& jobs, const Path& program, const SweepFolder& folder,
                  wire::SweepPoints points, wire::SweepRun run, SweepMeans means);

  // Runs until all points have ended, except those on other servers that are lost.
  void run();
  // One round of run(). Returns whether it was the last one.
  bool step(rules::Seconds now);
  void wait();

  const std::string& trouble() const { return trouble_; }
  bool has_late_starts() const { return !late_slots_.empty(); }

 private:
  const std::string& first_server() const { return run_.servers.front(); }

  void greet(Link& link) override;
  void take(Link& link, const wire::LinkMessage& message) override;
  void take_from_giver(const wire::LinkMessage& message, rules::Seconds now);
  void note_drop(const Link& link) override;

  std::optional<int> take_lease() override;
  void give_back(int slot) override { slots_.give_back(slot); }
  rules::PointStart start(const std::string& point, int slot) override;
  void tell(const wire::SweepMessage& message) override;
  bool write(const wire::SweepEntry& entry) override;

  wire::JobsToStart make_start(const std::string& point, const TakenLease* lease) const;
  rules::PointStart note_start(const std::string& point, int slot, const wire::StartedJob& result);
  void watch(const std::string& point);
  void take_late_starts(rules::Seconds now);
  void look_at_points(rules::Seconds now);
  void give(const std::string& server, const wire::SweepMessage& message);
  void talk_to_itself();
  void write_note();
  bool is_over(rules::Seconds now) const;

  const Host& host_;
  const JobsFolder& jobs_;
  Path program_;
  SweepFolder folder_;
  SweepDiary diary_;
  wire::SweepPoints points_;
  wire::SweepRun run_;
  SweepMeans means_;
  bool is_giver_;
  std::map<std::string, std::size_t> numbers_;  // by point
  PointSlots slots_;
  std::map<std::string, int> late_slots_;  // slots of points whose start is in progress
  std::map<std::string, std::unique_ptr<WatchedJob>> running_;
  std::optional<rules::SweepGiver> giver_;
  std::optional<rules::SweepTaker> taker_;
  std::vector<wire::SweepMessage> to_itself_;         // from the taker to the giver
  std::map<std::string, rules::Seconds> last_heard_;  // by server
  bool is_welcome_ = false;                           // whether the giver has answered
  std::string trouble_;
  std::string note_;
  rules::Seconds now_{0};  // the time of this round
  rules::Seconds next_look_{0};
  rules::Seconds next_beat_{0};
  std::vector<std::string> looked_at_;  // the points in the looker's orders
  // These must be the last members, because their threads use the others.
  PointStarts starts_;
  JobLooker looker_;
  Peers peers_;
};

}  // namespace remote::agent
