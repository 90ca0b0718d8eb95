#include "launch_world.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace remote::simulation {
namespace {

constexpr Seconds never{1e9};
constexpr Seconds kill_time{2};
constexpr Seconds patience{60};  // time after the last fault until everything must have ended

std::string name_server(std::size_t number) {
  return "s" + std::to_string(number);
}

}  // namespace

class SimulatedSupervisor final : public rules::LaunchActs {
 public:
  SimulatedSupervisor(LaunchWorld& world, std::size_t number) : world_(world), number_(number) {}

  // The server's state, which does not depend on whether its supervisor is alive.
  std::vector<LaunchWorld::Rank> ranks;
  double clock_rate = 1;
  bool has_crashed = false;
  Seconds frozen_until{0};
  Seconds started{0};  // last start of its supervisor
  Seconds left{0};

  bool is_frozen() const { return world_.now_ < frozen_until; }
  bool lives() const { return policy_ != nullptr; }
  bool has_left() const { return has_left_; }
  bool is_coordinator() const { return number_ == 0; }
  std::string name() const { return name_server(number_); }
  const std::optional<rules::LaunchVerdict>& verdict() const { return verdict_; }
  const std::optional<wire::EndReason>& reason() const { return reason_; }

  void start() {
    if (has_crashed || has_left_ || lives()) {
      return;
    }
    rules::LaunchSetup setup{name(), {}, world_.options_.grace, world_.options_.timeout};
    setup.needed = world_.options_.needed;
    // A member receives messages only from the coordinator; ten thousand lists of all names would not fit
    // into memory.
    const bool knows_all = is_coordinator() || world_.options_.servers < 100;
    for (std::size_t i = 0; i < world_.options_.servers; ++i) {
      if (knows_all || i == 0 || i == number_) {
        setup.servers.push_back(name_server(i));
      }
    }
    std::vector<rules::LaunchJob> jobs;
    for (const LaunchWorld::Rank& rank : ranks) {
      jobs.push_back({.id = std::to_string(jobs.size()), .rank = rank.number});
    }
    begun_ = clock();
    started = world_.now_;
    if (is_coordinator()) {
      world_.heard_blame_.reset();
    }
    policy_ = std::make_unique<rules::LaunchPolicy>(std::move(setup), std::move(jobs), begun_, *this);
    if (world_.options_.without != Rule::read_journal) {
      is_restoring_ = true;
      for (const wire::LaunchEntry& entry : journal_) {
        policy_->restore(entry, begun_);
      }
      is_restoring_ = false;
    }
    next_beat_ = next_try_ = next_look_ = Seconds(0);
    asleep_ = begun_;
    pause_ = Seconds(0);
    kill_ends_.reset();
    inbox_.clear();
    wake_at(world_.now_);
  }

  void die() {
    if (!lives()) {
      return;
    }
    policy_.reset();
    inbox_.clear();
    ++life_;
    if (is_coordinator()) {
      for (std::size_t member = 1; member < world_.options_.servers; ++member) {
        world_.close(member, false);
      }
    } else {
      world_.close(number_, true);
    }
  }

  void receive(std::size_t member, int connection, std::optional<wire::LinkMessage> message) {
    if (lives()) {
      inbox_.push_back({member, connection, std::move(message)});
      wake_at(std::max(world_.now_, frozen_until));
    }
  }
  void note_rank_end() {
    if (lives()) {
      next_look_ = Seconds(0);
      wake_at(std::max(world_.now_, frozen_until));
    }
  }

 private:
  struct Received {
    std::size_t member;
    int connection;
    std::optional<wire::LinkMessage> message;
  };

  Seconds clock() const { return Seconds(1000) + world_.now_ * clock_rate; }

  void wake_at(Seconds when) {
    if (when >= next_wake_ && next_wake_ > world_.now_) {
      return;
    }
    next_wake_ = when;
    world_.at(when, [this, life = life_, when] {
      if (life == life_ && lives() && next_wake_ == when) {
        wake();
      }
    });
  }

  void wake() {
    if (is_frozen()) {
      next_wake_ = never;
      wake_at(frozen_until);
      return;
    }
    next_wake_ = never;
    const Seconds now = clock();
    if (const Seconds late = now - asleep_ - pause_;
        late > Seconds(1) && world_.options_.without != Rule::discount_pauses) {
      policy_->discount_pause(late);
      heard_ += late;
    }
    for (std::deque<Received> inbox = std::exchange(inbox_, {}); const Received& each : inbox) {
      take(each, now);
    }
    work(now);
    if (!lives()) {
      return;
    }
    asleep_ = now;
    pause_ = choose_pause(now);
    wake_at(world_.now_ + pause_ / clock_rate);
  }

  // Like the loop in agent/launch/supervisor.cpp.
  void work(Seconds now) {
    if (!is_coordinator() && is_linked() && now - heard_ > world_.options_.timeout / 3) {
      world_.close(number_, true);
    }
    if (world_.options_.without != Rule::notice_silence) {
      policy_->notice_silence(now);
    }
    if (!is_coordinator() && !is_linked() && now >= next_try_) {
      next_try_ =
          now + (now - begun_ < Seconds(1.5) ? Seconds(0.05) : std::min(Seconds(0.5), policy_->beat()));
      if (world_.connect(number_)) {
        greet(now);
      }
    }
    look_at_ranks(now);
    kill_ranks(now);
    if (now >= next_beat_) {
      next_beat_ = now + policy_->beat();
      broadcast(wire::Beat{});
    }
    leave_if_over(now);
  }

  bool is_linked() const { return world_.connections_[number_].member_has_it; }

  void greet(Seconds now) {
    heard_ = now;
    world_.send(number_, true, wire::Hello{});
    if (world_.options_.without != Rule::report_again) {
      for (const wire::LinkMessage& message : policy_->reports()) {
        world_.send(number_, true, message);
      }
    }
    if (policy_->reason()) {
      world_.send(number_, true, wire::EndLaunch{*policy_->reason()});
    }
  }

  void take(const Received& received, Seconds now) {
    LaunchWorld::Connection& connection = world_.connections_[received.member];
    if (connection.number != received.connection) {
      return;
    }
    if (!received.message) {
      world_.close(received.member, !is_coordinator());
      return;
    }
    const std::string sender = name_server(is_coordinator() ? received.member : 0);
    if (is_coordinator()) {
      if (std::holds_alternative<wire::Hello>(*received.message)) {
        connection.is_greeted = true;
        for (const wire::LinkMessage& reply : policy_->welcome(sender)) {
          if (std::holds_alternative<wire::Welcome>(reply) ||
              world_.options_.without != Rule::tell_late_comers) {
            world_.send(received.member, false, reply);
          }
        }
      }
    } else {
      heard_ = now;
    }
    const auto* failed = std::get_if<wire::JobFailed>(&*received.message);
    if (failed != nullptr && failed->failure.rank == world_.blamed_rank_ && !world_.heard_blame_) {
      world_.heard_blame_ = world_.now_;
    }
    policy_->hear(sender, *received.message, now);
  }

  void look_at_ranks(Seconds now) {
    if (now < next_look_ || kill_ends_) {
      return;
    }
    next_look_ = now + Seconds(5);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (policy_->jobs()[i].ended || ranks[i].lives) {
        continue;
      }
      std::optional<wire::RankFailure> failure;
      if (ranks[i].failed) {
        failure =
            wire::RankFailure{ranks[i].number, name(), {wire::EndKind::exit, 1}, ranks[i].after_peer, ""};
      }
      policy_->note_end(i, failure, now);
    }
  }

  void kill_ranks(Seconds now) {
    if (kill_ends_) {
      if (now < *kill_ends_) {
        return;
      }
      kill_ends_.reset();
      next_look_ = Seconds(0);
      look_at_ranks(now);
    }
    const std::vector<std::string> ids = policy_->jobs_to_kill(now);
    if (ids.empty() || world_.options_.without == Rule::stop_leftovers) {
      return;
    }
    kill_ends_ = now + kill_time;
    for (const std::string& id : ids) {
      LaunchWorld::Rank& rank = ranks[static_cast<std::size_t>(std::stoi(id))];
      if (rank.lives && !std::exchange(rank.is_stubborn, false)) {
        rank.lives = false;
        rank.was_stopped = true;
        world_.break_launch(world_.now_);
      }
    }
  }

  void leave_if_over(Seconds now) {
    if (kill_ends_) {
      return;
    }
    bool is_over = policy_->try_to_leave(now, true);
    if (is_coordinator() && world_.options_.without == Rule::wait_for_members) {
      is_over = policy_->jobs_have_ended();
    } else if (!is_coordinator() && world_.options_.without == Rule::await_answer) {
      is_over = is_over || (policy_->jobs_have_ended() && !policy_->reason() && is_linked());
    }
    if (!is_over) {
      return;
    }
    const bool is_alive = std::ranges::any_of(ranks, &LaunchWorld::Rank::lives);
    if (is_alive && world_.options_.without != Rule::stop_leftovers) {
      world_.violate(name() + "'s supervisor leaves, and a rank lives");
    }
    std::vector<rules::JobResult> results;
    for (const LaunchWorld::Rank& rank : ranks) {
      results.push_back({.succeeded = !rank.failed && !rank.was_stopped,
                         .ended_because = rank.was_stopped ? policy_->reason() : std::nullopt});
    }
    verdict_ = policy_->verdict(results);
    reason_ = policy_->reason();
    broadcast(wire::Bye{});
    has_left_ = true;
    left = world_.now_;
    die();
  }

  Seconds choose_pause(Seconds now) const {
    if (!is_coordinator() && now - begun_ < Seconds(1.5)) {
      return Seconds(0.05);
    }
    Seconds until = std::min(next_beat_, next_look_);
    const bool is_cut_off = !is_coordinator() && !is_linked();
    if (policy_->reason() || is_cut_off || policy_->left_because()) {
      until = std::min(until, now + Seconds(0.1));
    } else if (policy_->jobs_have_ended()) {
      until = std::min(until, now + Seconds(0.5));
    }
    return std::clamp(until - now, Seconds(0.001), Seconds(5));
  }

  void broadcast(const wire::LinkMessage& message) override {
    if (!is_coordinator()) {
      world_.send(number_, true, message);
      return;
    }
    for (std::size_t member = 1; member < world_.options_.servers; ++member) {
      if (world_.connections_[member].is_greeted) {
        world_.send(member, false, message);
      }
    }
  }
  void tell(const std::string& server, const wire::LinkMessage& message) override {
    const std::size_t member = std::stoul(server.substr(1));
    if (world_.connections_[member].is_greeted) {
      world_.send(member, false, message);
    }
  }
  void record(const wire::LaunchEntry& entry) override {
    if (!is_restoring_) {
      journal_.push_back(entry);
    }
  }

  LaunchWorld& world_;
  std::size_t number_;
  std::unique_ptr<rules::LaunchPolicy> policy_;
  std::vector<wire::LaunchEntry> journal_;
  bool is_restoring_ = false;
  bool has_left_ = false;
  std::optional<rules::LaunchVerdict> verdict_;
  std::optional<wire::EndReason> reason_;
  int life_ = 0;
  std::deque<Received> inbox_;
  Seconds begun_{0};
  Seconds next_wake_ = never;  // on the world's clock; the other times are on this server's clock
  Seconds next_beat_{0};
  Seconds next_try_{0};
  Seconds next_look_{0};
  Seconds asleep_{0};
  Seconds pause_{0};
  Seconds heard_{0};
  std::optional<Seconds> kill_ends_;
};

LaunchWorld::LaunchWorld(std::uint64_t seed, LaunchOptions options)
    : options_(options), random_(seed), connections_(options.servers) {
  longest_delay_ = random_.choose({Seconds(0.001), Seconds(0.05), Seconds(0.5)});
  // In each slot all servers are suspended together, or the coordinator or some members have a fault, so that
  // two faults never affect the same link.
  enum class Slot { suspension, coordinator, members };
  std::vector<std::pair<Slot, Time>> slots;
  Time begin{10};
  for (std::size_t i = 1 + random_.below(4); i > 0; --i) {
    const Slot kind = random_.choose({Slot::suspension, Slot::coordinator, Slot::members, Slot::members});
    slots.emplace_back(kind, begin);
    begin += options_.timeout * (kind == Slot::suspension ? 3 : 1.5);
  }
  const Time end{random_.uniform(10, begin.count() + 10)};
  // The last rank may run alone for a while.
  const Time spread = random_.chance() < 0.5 ? options_.timeout * 3 : Time(3);
  int number = 0;
  for (std::size_t i = 0; i < options_.servers; ++i) {
    auto server = std::make_unique<SimulatedSupervisor>(*this, i);
    server->clock_rate = random_.uniform(0.991, 1.009);
    for (std::size_t rank = 0; rank < options_.ranks; ++rank) {
      server->ranks.push_back({.number = number++,
                               .ends = end + spread * random_.chance(),
                               .is_stubborn = random_.chance() < 0.2});
    }
    servers_.push_back(std::move(server));
  }
  for (std::size_t i = 0; i < options_.servers; ++i) {
    at(Seconds(random_.uniform(0, 3)), [this, i] { servers_[i]->start(); });
    for (std::size_t rank = 0; rank < options_.ranks; ++rank) {
      at(servers_[i]->ranks[rank].ends, [this, i, rank] { end_rank(i, rank, false); });
    }
  }
  calm_ = end + spread;
  for (const auto& [kind, when] : slots) {
    if (options_.is_calm || options_.trouble == Trouble::failed_in_cut) {
      break;
    }
    if (kind == Slot::suspension) {
      plan_suspension(when);
    } else if (kind == Slot::coordinator) {
      plan_harmless(0, when);
    }
    for (std::size_t server = 1; kind == Slot::members && server < options_.servers; ++server) {
      if (random_.chance() < 0.5) {
        plan_harmless(server, when);
      }
    }
  }
  if (options_.trouble != Trouble::harmless) {
    plan_fatal(Seconds(random_.uniform(10, end.count())));
  }
}

LaunchWorld::~LaunchWorld() = default;

void LaunchWorld::at(Time when, std::function<void()> happen) {
  events_.push({when, next_++, std::move(happen)});
}

void LaunchWorld::violate(const std::string& what) {
  if (violation_.empty()) {
    violation_ = what + ", " + std::to_string(now_.count()) + " s after the begin";
  }
}

// Ends well before the other servers consider this one lost; the next slot begins after that.
void LaunchWorld::plan_harmless(std::size_t number, Time begin) {
  const Time when = begin + Seconds(random_.uniform(0, options_.timeout.count() * 0.4));
  const Seconds length{random_.uniform(0.1, options_.timeout.count() * 0.6)};
  SimulatedSupervisor& server = *servers_[number];
  const int kind = random_.choose({0, 1, 2, 2, 2});
  if (kind == 0) {
    const int directions = random_.choose({1, 2, 3});
    at(when, [this, number, directions, until = when + length] {
      for (std::size_t member = 1; member < options_.servers; ++member) {
        if (number == 0 || number == member) {
          cut(member, (directions & 1) != 0, (directions & 2) != 0, until);
        }
      }
    });
  } else if (kind == 1) {
    at(when, [&server, until = when + length] { server.frozen_until = until; });
  } else {
    // Sometimes at the moment when a supervisor is about to leave.
    const auto& about = random_.choose(servers_);
    const Time death =
        random_.chance() < 0.5 ? when : about->ranks.back().ends + Seconds(random_.uniform(0, 0.5));
    at(death, [this, &server] {
      server.die();
      at(now_ + Seconds(random_.uniform(0.01, 0.5)), [&server] { server.start(); });
    });
  }
  calm_ = std::max(calm_, when + length);
}

// They wake up one after another.
void LaunchWorld::plan_suspension(Time begin) {
  const Time until = begin + options_.timeout * random_.uniform(0.5, 2);
  for (const auto& server : servers_) {
    at(begin + Seconds(random_.chance()),
       [&frozen = *server, last = until + Seconds(random_.uniform(0, 2))] { frozen.frozen_until = last; });
  }
  calm_ = std::max(calm_, until + Seconds(2));
}

void LaunchWorld::plan_fatal(Time when) {
  const std::size_t member = 1 + random_.below(options_.servers - 1);
  const Seconds length = options_.timeout * random_.uniform(1.3, 3);
  blamed_ = options_.trouble == Trouble::lost_first ? 0 : member;
  SimulatedSupervisor& server = *servers_[blamed_];
  calm_ = std::max(calm_, when + length);
  if (options_.trouble == Trouble::failed_rank || options_.trouble == Trouble::failed_in_cut) {
    if (options_.trouble == Trouble::failed_rank) {
      blamed_ = random_.below(options_.servers);
    } else {
      const Time until = when + options_.timeout * random_.uniform(0.4, 0.6);
      at(when - Seconds(0.1), [this, until] { cut(blamed_, true, true, until); });
    }
    const std::size_t rank = random_.below(options_.ranks);
    at(when, [this, rank] {
      Rank& failing = servers_[blamed_]->ranks[rank];
      if (failing.lives && !broken_) {
        failing.lives = false;
        failing.failed = true;
        blamed_rank_ = failing.number;
        servers_[blamed_]->note_rank_end();
        break_launch(now_);
      }
    });
  } else if (options_.trouble == Trouble::lost_member || options_.trouble == Trouble::lost_first) {
    at(when, [this, &server] {
      // Nothing more is sent, not even that its links are closed.
      for (std::size_t other = 1; other < options_.servers; ++other) {
        if (blamed_ == 0 || blamed_ == other) {
          cut(other, true, true, never);
        }
      }
      server.die();
      server.has_crashed = true;
      bool ran = false;
      for (Rank& rank : server.ranks) {
        ran = ran || rank.lives;
        rank.lives = false;
      }
      if (ran) {
        break_launch(now_);
      }
    });
  } else if (options_.trouble == Trouble::long_cut) {
    at(when, [this, until = when + length] { cut(blamed_, true, true, until); });
  } else if (options_.trouble == Trouble::long_pause) {
    at(when, [&server, until = when + length] { server.frozen_until = until; });
  } else if (options_.trouble == Trouble::dead_watchers) {
    at(when, [this, &server, until = when + length] {
      server.die();
      at(until, [&server] { server.start(); });
    });
  }
}

// A rank is missing: the others hang, or fail a moment later.
void LaunchWorld::break_launch(Time when) {
  if (broken_ || options_.needed != 0) {
    return;
  }
  broken_ = when;
  if (!options_.peers_notice) {
    return;
  }
  for (std::size_t server = 0; server < options_.servers; ++server) {
    for (std::size_t rank = 0; rank < options_.ranks; ++rank) {
      at(when + Seconds(random_.uniform(0.5, 4)), [this, server, rank] { end_rank(server, rank, true); });
    }
  }
}

void LaunchWorld::end_rank(std::size_t number, std::size_t index, bool by_peer) {
  SimulatedSupervisor& server = *servers_[number];
  Rank& rank = server.ranks[index];
  if (!rank.lives || (broken_ && !by_peer)) {
    return;
  }
  if (server.is_frozen()) {
    at(server.frozen_until + Seconds(0.01),
       [this, number, index, by_peer] { end_rank(number, index, by_peer); });
    return;
  }
  rank.lives = false;
  rank.failed = rank.after_peer = by_peer;
  server.note_rank_end();
}

void LaunchWorld::cut(std::size_t member, bool up, bool down, Time until) {
  Connection& connection = connections_[member];
  if (up) {
    connection.up.cut_until = std::max(connection.up.cut_until, until);
  }
  if (down) {
    connection.down.cut_until = std::max(connection.down.cut_until, until);
  }
}

bool LaunchWorld::connect(std::size_t member) {
  Connection& connection = connections_[member];
  const SimulatedSupervisor& first = coordinator();
  if (!first.lives() || first.is_frozen() || connection.up.cut_until > now_ ||
      connection.down.cut_until > now_) {
    return false;
  }
  Connection fresh;
  fresh.number = connection.number + 1;
  fresh.member_has_it = fresh.coordinator_has_it = true;
  connection = std::move(fresh);
  return true;
}

void LaunchWorld::send(std::size_t member, bool up, std::optional<wire::LinkMessage> message) {
  Connection& connection = connections_[member];
  if (!(up ? connection.member_has_it : connection.coordinator_has_it)) {
    return;
  }
  Channel& channel = up ? connection.up : connection.down;
  channel.messages.emplace_back(now_ + longest_delay_ * random_.chance(), std::move(message));
  if (!std::exchange(channel.pumps, true)) {
    at(channel.messages.front().first,
       [this, member, up, number = connection.number] { pump(member, up, number); });
  }
}

void LaunchWorld::pump(std::size_t member, bool up, int number) {
  Connection& connection = connections_[member];
  if (connection.number != number) {
    return;
  }
  Channel& channel = up ? connection.up : connection.down;
  channel.pumps = false;
  while (!channel.messages.empty()) {
    const Time ready = std::max(channel.messages.front().first, channel.cut_until);
    if (ready > now_) {
      channel.pumps = true;
      if (ready < never) {
        at(ready, [this, member, up, number] { pump(member, up, number); });
      }
      return;
    }
    auto message = std::move(channel.messages.front().second);
    channel.messages.pop_front();
    if (up ? connection.coordinator_has_it : connection.member_has_it) {
      servers_[up ? 0 : member]->receive(member, number, std::move(message));
    }
  }
}

void LaunchWorld::close(std::size_t member, bool by_member) {
  Connection& connection = connections_[member];
  bool& has_it = by_member ? connection.member_has_it : connection.coordinator_has_it;
  if (has_it) {
    send(member, by_member, std::nullopt);
    has_it = false;
  }
}

std::string LaunchWorld::play() {
  const Time limit = calm_ + options_.timeout * 4 + options_.grace + patience;
  while (!events_.empty() && violation_.empty()) {
    Event event = events_.top();
    events_.pop();
    if (event.when > limit) {
      break;
    }
    now_ = event.when;
    event.happen();
  }
  if (violation_.empty()) {
    check_end();
  }
  return violation_;
}

void LaunchWorld::check_end() {
  bool all_well = true;
  for (const auto& server : servers_) {
    if (server->has_crashed) {
      continue;
    }
    for (const Rank& rank : server->ranks) {
      if (rank.lives) {
        violate("rank " + std::to_string(rank.number) + " still lives on " + server->name());
      }
      all_well = all_well && !rank.failed && !rank.was_stopped;
    }
    if (!server->has_left()) {
      violate("the supervisor of " + server->name() + " has not left");
    }
    // A failure must be blamed on a rank that failed, a loss on a server that was lost.
    const auto& reason = server->reason();
    if (const auto* ended = reason ? std::get_if<wire::RankEnded>(&*reason) : nullptr) {
      const Rank& rank = servers_[static_cast<std::size_t>(ended->rank) / options_.ranks]
                             ->ranks[static_cast<std::size_t>(ended->rank) % options_.ranks];
      if (!rank.failed) {
        violate(server->name() + " blames rank " + std::to_string(ended->rank) + ", which did not fail");
      }
    }
  }
  const bool is_sound = options_.trouble == Trouble::harmless || (options_.needed != 0 && !broken_);
  if (is_sound && !all_well) {
    violate("a rank of a sound launch was stopped");
  }
  const auto& verdict = coordinator().verdict();
  if (options_.trouble == Trouble::harmless && verdict && verdict->end != rules::LaunchEnd::succeeded &&
      verdict->end != rules::LaunchEnd::unknown) {
    violate("the verdict on a sound launch is not that it succeeded");
  }
  // A restarted coordinator does not learn of failures on servers that have left, and a late report is not
  // considered the cause (rules::longest_delay).
  if (blamed_rank_ >= 0 && servers_[blamed_]->left > coordinator().started + Seconds(2) &&
      !(heard_blame_ && *heard_blame_ - std::max(coordinator().started, *broken_) > Seconds(4.5)) &&
      !(verdict && verdict->end == rules::LaunchEnd::failed && verdict->rank == blamed_rank_)) {
    violate("the verdict does not name rank " + std::to_string(blamed_rank_));
  }
  if (options_.is_calm && options_.trouble == Trouble::lost_member && broken_ &&
      !(verdict && verdict->end == rules::LaunchEnd::lost && verdict->server == name_server(blamed_)) &&
      options_.servers > 2) {
    violate("the verdict does not name the lost server " + name_server(blamed_));
  }
}

}  // namespace remote::simulation
