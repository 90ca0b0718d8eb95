#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "random.hpp"
#include "rules/launch_policy.hpp"

// A launch in one process on a virtual clock: on each server a supervisor with the real policy, and ranks
// that live, hang, or end. The links behave as TCP does: messages are late, but in order; they wait while the
// network is cut, and are lost when a side closes the link or dies.

namespace remote::simulation {

using rules::Seconds;

// A rule that a test leaves out, to see whether the simulation notices.
enum class Rule {
  none,
  report_again,      // a member repeats its reports over each new link
  discount_pauses,   // a paused supervisor takes no other server for silent
  read_journal,      // a supervisor that is started again knows what its predecessor knew
  notice_silence,    // a silent server is lost
  tell_late_comers,  // a member that connects late hears that the launch ends
  wait_for_members,  // the coordinator stays until the others have left
  stop_leftovers,    // jobs are stopped when the launch ends
  await_answer       // a member stays until the coordinator has noted its bye
};

enum class Trouble {
  harmless,       // short cuts, pauses, and deaths of supervisors: the launch must not notice
  failed_rank,    // a rank fails
  failed_in_cut,  // a rank fails while its server is cut off for less than the timeout
  lost_member,    // a member crashes
  lost_first,     // the coordinator crashes
  long_cut,       // a member is cut off for longer than the timeout
  long_pause,     // a member is paused for longer than the timeout
  dead_watchers   // a member's supervisor dies together with its watchdog, and is started again late
};

struct LaunchOptions {
  std::size_t servers = 3;
  std::size_t ranks = 2;  // of each server
  Seconds grace{2};
  Seconds timeout{20};
  int needed = 0;             // see rules::LaunchSetup
  bool peers_notice = false;  // ranks fail after a rank elsewhere has ended early; otherwise they hang
  Trouble trouble = Trouble::harmless;
  bool is_calm = false;  // without harmless troubles besides
  Rule without = Rule::none;
};

class SimulatedSupervisor;

class LaunchWorld {
 public:
  LaunchWorld(std::uint64_t seed, LaunchOptions options);
  ~LaunchWorld();
  LaunchWorld(const LaunchWorld&) = delete;
  LaunchWorld& operator=(const LaunchWorld&) = delete;

  // Plays the launch to its end. Returns the first violation of an invariant; "" if all held.
  std::string play();

 private:
  friend class SimulatedSupervisor;
  using Time = Seconds;  // since the begin, by the clock of the world

  struct Event {
    Time when;
    std::uint64_t number;  // events of the same time happen in order
    std::function<void()> happen;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };
  struct Rank {
    int number = 0;
    Time ends{0};  // by itself, if no other rank is missing
    bool lives = true;
    bool failed = false;
    bool was_stopped = false;
    bool after_peer = false;
    bool is_stubborn = false;  // survives the first kill
  };
  // One direction of a link.
  struct Channel {
    std::deque<std::pair<Time, std::optional<wire::LinkMessage>>> messages;  // nullopt: closed
    Time cut_until{0};
    bool pumps = false;
  };
  // The connection of a member to the coordinator. Each new one has another number.
  struct Connection {
    int number = 0;
    bool member_has_it = false;
    bool coordinator_has_it = false;
    bool is_greeted = false;  // the coordinator knows whose it is
    Channel up;
    Channel down;
  };

  void at(Time when, std::function<void()> happen);
  void violate(const std::string& what);
  SimulatedSupervisor& coordinator() { return *servers_.front(); }

  void plan_harmless(std::size_t server, Time when);
  void plan_suspension(Time begin);
  void plan_fatal(Time when);
  void break_launch(Time when);
  void end_rank(std::size_t server, std::size_t rank, bool by_peer);
  void cut(std::size_t member, bool up, bool down, Time until);
  void check_end();

  bool connect(std::size_t member);
  void send(std::size_t member, bool up, std::optional<wire::LinkMessage> message);
  void pump(std::size_t member, bool up, int number);
  void close(std::size_t member, bool by_member);

  LaunchOptions options_;
  Random random_;
  Time now_{0};
  std::uint64_t next_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<SimulatedSupervisor>> servers_;
  std::vector<Connection> connections_;  // by member; the first is unused
  Time longest_delay_{0.05};
  std::optional<Time> broken_{};  // when a rank first went missing
  std::size_t blamed_ = 0;        // the server of the fatal trouble
  int blamed_rank_ = -1;
  std::optional<Time> heard_blame_{};  // when the coordinator first heard of its failure
  Time calm_{0};                       // when the last trouble is over
  std::string violation_;
};

}  // namespace remote::simulation
