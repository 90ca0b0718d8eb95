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

// A launch in one process on a virtual clock. Each server has a supervisor with the real policy, and ranks
// that run, hang, or end. The links behave like TCP: messages may be late but stay in order; they wait while
// the network is cut, and are lost when one side closes the link or dies.

namespace remote::simulation {

using rules::Seconds;

// A rule that a test disables, to check that the simulation notices.
enum class Rule {
  none,
  report_again,      // a member repeats its reports over each new link
  discount_pauses,   // a supervisor that was paused does not consider other servers silent
  read_journal,      // a restarted supervisor knows what its predecessor knew
  notice_silence,    // a silent server is lost
  tell_late_comers,  // a member that connects late is told that the launch is ending
  wait_for_members,  // the coordinator stays until the others have left
  stop_leftovers,    // jobs are stopped when the launch ends
  await_answer       // a member stays until the coordinator has recorded its bye
};

enum class Trouble {
  harmless,       // short cuts, pauses, and deaths of supervisors: the launch must not be affected
  failed_rank,    // a rank fails
  failed_in_cut,  // a rank fails while its server is cut off for less than the timeout
  lost_member,    // a member crashes
  lost_first,     // the coordinator crashes
  long_cut,       // a member is cut off for longer than the timeout
  long_pause,     // a member is paused for longer than the timeout
  dead_watchers   // a member's supervisor dies together with its watchdog, and is restarted late
};

struct LaunchOptions {
  std::size_t servers = 3;
  std::size_t ranks = 2;  // per server
  Seconds grace{2};
  Seconds timeout{20};
  int needed = 0;             // see rules::LaunchSetup
  bool peers_notice = false;  // ranks fail after a rank elsewhere has ended early; otherwise they hang
  Trouble trouble = Trouble::harmless;
  bool is_calm = false;  // no additional harmless faults
  Rule without = Rule::none;
};

class SimulatedSupervisor;

class LaunchWorld {
 public:
  LaunchWorld(std::uint64_t seed, LaunchOptions options);
  ~LaunchWorld();
  LaunchWorld(const LaunchWorld&) = delete;
  LaunchWorld& operator=(const LaunchWorld&) = delete;

  // Simulates the launch until it ends. Returns the first violated invariant; "" if all held.
  std::string play();

 private:
  friend class SimulatedSupervisor;
  using Time = Seconds;  // since the start, on the world's clock

  struct Event {
    Time when;
    std::uint64_t number;  // keeps events with the same time in order
    std::function<void()> happen;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };
  struct Rank {
    int number = 0;
    Time ends{0};  // on its own, if no other rank is missing
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
  // The connection of a member to the coordinator. Each new connection has a new number.
  struct Connection {
    int number = 0;
    bool member_has_it = false;
    bool coordinator_has_it = false;
    bool is_greeted = false;  // the coordinator knows which member it is from
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
  std::optional<Time> broken_{};  // when the first rank went missing
  std::size_t blamed_ = 0;        // the server of the fatal fault
  int blamed_rank_ = -1;
  std::optional<Time> heard_blame_{};  // when the coordinator learned of its failure
  Time calm_{0};                       // end of the last fault
  std::string violation_;
};

}  // namespace remote::simulation
