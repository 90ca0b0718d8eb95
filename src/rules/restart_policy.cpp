#include "rules/restart_policy.hpp"

#include <algorithm>
#include <cmath>

namespace remote::rules {
namespace {

using wire::OutcomeState;

constexpr double drift = 0.98;        // a member's clock may be slower by this factor
constexpr Seconds short_attempt{60};  // after an attempt that was shorter than this, the next one waits
// How much later than a failure after a peer's its cause may be detected.
constexpr Seconds peer_delay{1};          // on a server whose ranks have all ended
constexpr Seconds longest_peer_delay{5};  // while ranks are running: longest_delay
// A provider that takes back a machine stops its processes this long before.
constexpr Seconds departure{30};
constexpr Seconds result_delay{2};    // for a guard to record how its job ended, once it may do so
constexpr Seconds recording_time{5};  // for the guards to record that an attempt ended, after it was killed

const wire::RankFailure* failure_in(const std::optional<wire::Cause>& cause) {
  return cause ? std::get_if<wire::RankFailure>(&*cause) : nullptr;
}

bool is_after_peer(const std::optional<wire::Cause>& cause) {
  const auto* failure = failure_in(cause);
  return failure != nullptr && failure->after_peer;
}

// Whether it ended by SIGTERM, which processes get when their machine shuts down; 143 is a shell's exit
// status for it.
bool is_told_to_end(const std::optional<wire::Cause>& cause) {
  const auto* failure = failure_in(cause);
  return failure != nullptr && (failure->ending == wire::Ending{wire::EndKind::signal, 15} ||
                                failure->ending == wire::Ending{wire::EndKind::exit, 143});
}

bool is_loss(const wire::Cause& cause) {
  return std::holds_alternative<wire::ServerLoss>(cause) ||
         std::holds_alternative<wire::SupervisorDeath>(cause);
}

bool is_possible(const wire::Shape& shape) {
  return shape.world_size >= 1 && shape.first_rank < shape.world_size && shape.nodes >= 1 &&
         shape.nodes <= shape.world_size && shape.node_rank < shape.nodes;
}

}  // namespace

RestartPolicy::RestartPolicy(LaunchSetup setup, RestartSetup restarts, std::vector<LaunchJob> jobs,
                             int attempt, std::uint64_t first_question, const std::optional<Revived>& revived,
                             Seconds now, RestartActs& acts, RestartTimes times)
    : LaunchPolicy(std::move(setup), std::move(jobs), now, acts),
      restarts_(std::move(restarts)),
      times_(times),
      restart_acts_(acts),
      attempt_(attempt),
      ended_(std::max(attempt - 1, 0)),
      killing_(revived && is_coordinator()),
      until_(revived ? revived->lease_until : now + setup_.timeout * drift),
      question_(first_question),
      next_question_(now),
      members_(setup_.servers, restarts_.ranks, restarts_.spares),
      granted_(attempt),
      ending_(revived.has_value()),
      quiet_until_(revived && times_.revived_coordinator_waits ? now + setup_.timeout + times_.longest_kill
                                                               : now),
      begun_(revived ? revived->attempt_began : now),
      failed_at_(now) {
  if (revived) {
    failure_ = wire::SupervisorDeath{coordinator()};
    known_.insert(setup_.servers.begin(), setup_.servers.end());
  } else {
    known_.insert(setup_.own);
    restart_acts_.renew_lease(until_);
  }
  const bool fenced = !revived || times_.revived_coordinator_waits;
  for (const std::string& name : members_.names()) {
    answered_[name] = fenced ? now : now - 1000 * setup_.timeout;
  }
}

// ---- This server's ranks

void RestartPolicy::note_end(std::size_t index, const std::optional<wire::RankFailure>& failure,
                             Seconds now) {
  if (released_) {
    LaunchPolicy::note_end(index, failure, now);
    return;
  }
  job(index).ended = true;
  kept_ends_.push_back({index, failure});
}

void RestartPolicy::note_failed_rank(std::size_t index, const wire::RankFailure& failure, Seconds now) {
  if (released_) {
    LaunchPolicy::note_failed_rank(index, failure, now);
  } else if (outcome_.state == OutcomeState::running && !killing_ && !is_round_over(job(index)) &&
             has_launcher_failed(now)) {
    outcome_ = {OutcomeState::failed, 0, failure};
    next_question_ = now;
  }
}

// This server cannot run another attempt. `failure` is set if guards were killed with all of their processes.
wire::Outcome RestartPolicy::failed_for_good(int rank) const {
  const auto gone = std::ranges::find_if(kept_ends_, [](const KeptEnd& end) {
    return end.failure && end.failure->ending.kind == wire::EndKind::gone;
  });
  return {OutcomeState::failed_for_good, rank, gone == kept_ends_.end() ? std::nullopt : gone->failure};
}

// Finds the outcome of this attempt on this server.
void RestartPolicy::notice_ends(Seconds now) {
  if (outcome_.state != OutcomeState::running || released_) {
    return;
  }
  // If a user stopped a job, or it lost its guard, no other attempt can have it.
  for (const KeptEnd& end : kept_ends_) {
    outcome_ = end.failure ? failed_for_good(job(end.job).rank)
                           : wire::Outcome{OutcomeState::ended_for_good, job(end.job).rank, std::nullopt};
  }
  // A rank that is being stopped fails because of that, which gives no information about the cause.
  std::size_t over = 0;
  for (const LaunchJob& each : jobs_) {
    if (killing_ || !is_round_over(each)) {
      continue;
    }
    ++over;
    if (each.round->ending != wire::Ending{wire::EndKind::exit, 0}) {
      outcome_ = {OutcomeState::failed, 0, restart_acts_.describe_failure(each)};
      outcome_.failure->server = setup_.own;
      break;
    }
  }
  if (outcome_.state == OutcomeState::running && over == jobs_.size()) {
    outcome_.state = OutcomeState::succeeded;
  }
  if (outcome_.state != OutcomeState::running) {
    next_question_ = now;
  }
}

std::vector<std::string> RestartPolicy::jobs_to_kill(Seconds now) {
  if (released_) {
    // If a job ended on its own, its guard records the result only now. Killing it earlier would look like
    // the cause.
    const bool recording = std::ranges::any_of(
        jobs_, [this](const LaunchJob& each) { return !each.ended && is_round_over(each); });
    if (recording && kills_ == 0 && now < end_at_ + result_delay) {
      return {};
    }
    return LaunchPolicy::jobs_to_kill(now);
  }
  if (!killing_ || is_resting()) {
    return {};
  }
  std::set<std::string> over;
  std::vector<std::string> ids;
  for (const LaunchJob& each : jobs_) {
    if (each.ended || is_round_over(each)) {
      over.insert(each.id);
    }
    if (!each.ended) {
      ids.push_back(each.id);
    }
  }
  if (cleaned_ && over.size() == jobs_.size()) {
    ended_ = attempt_;
    next_question_ = now;
    return {};
  }
  if (cleaned_ && now < cleaned_at_ + recording_time) {
    return {};  // the guards have not recorded the ends yet
  }
  if (kills_ >= kill_rounds) {
    outcome_ = failed_for_good(jobs_.front().rank);
    return {};
  }
  if (kills_ == 0) {
    own_ends_ = std::move(over);
  }
  ++kills_;
  return ids;
}

void RestartPolicy::begin(int attempt, const wire::Shape& shape, Seconds until) {
  attempt_ = attempt;
  killing_ = cleaned_ = false;
  kills_ = 0;
  outcome_ = {};
  rank_failed_at_.reset();
  until_ = until;
  restart_acts_.renew_lease(until);
  const std::set<std::string> offered = std::exchange(offered_, {});
  if (!shape.resume_from.empty() && !offered.contains(shape.resume_from)) {
    restart_acts_.refuse_checkpoint();
    outcome_ = failed_for_good(jobs_.front().rank);
  } else if (!restart_acts_.start(attempt, shape)) {
    outcome_ = failed_for_good(jobs_.front().rank);
  }
}

void RestartPolicy::ask(Seconds now) {
  ++question_;
  std::erase_if(asked_, [&](const auto& each) { return now - each.second >= setup_.timeout; });
  asked_[question_] = now;
  wire::AskLease ask{question_, attempt_, ended_, outcome_, {}};
  if (is_resting()) {
    ask.checkpoints = restart_acts_.checkpoints();
    offered_.insert(ask.checkpoints.begin(), ask.checkpoints.end());
  }
  next_question_ = now + beat_;
  if (!is_coordinator()) {
    restart_acts_.tell(coordinator(), ask);
    return;
  }
  const wire::LinkMessage reply = answer(setup_.own, ask, now);
  if (const auto* grant = std::get_if<wire::GrantLease>(&reply)) {
    take_grant(*grant, now);
  }
}

void RestartPolicy::take_grant(const wire::GrantLease& grant, Seconds now) {
  const auto found = asked_.find(grant.question);
  if (found == asked_.end()) {
    return;
  }
  const Seconds asked = times_.lease_counts_from_question ? found->second : now;
  const Seconds until = asked + setup_.timeout * drift;
  asked_.erase(found);
  if (now >= until || grant.attempt <= ended_) {
    return;
  }
  if (grant.attempt == attempt_ && !killing_) {
    if (until > until_) {
      until_ = until;
      restart_acts_.renew_lease(until);
    }
  } else if (grant.attempt > attempt_ && is_resting() && is_possible(grant.shape)) {
    begin(grant.attempt, grant.shape, until);
    next_question_ = now;  // an order of mpirun may be waiting for the coordinator to know this
  }
}

void RestartPolicy::keep_lease(Seconds now) {
  if (!is_resting() && now >= until_) {
    killing_ = true;
  }
  const auto found = last_heard_.find(coordinator());
  const Seconds heard = found == last_heard_.end() ? start_ : found->second;
  if (!is_coordinator() && is_resting() &&
      now > std::max(heard, until_) + setup_.timeout + times_.longest_kill) {
    finish(wire::ServerLoss{coordinator()}, NoRestart::coordinator_lost, now);
  }
}

// ---- The coordinator

wire::LinkMessage RestartPolicy::answer(const std::string& server, const wire::AskLease& question,
                                        Seconds now) {
  if (released_) {
    return wire::NoMoreAttempts{reason_};
  }
  if (members_.is_spare(server)) {
    members_.hear_spare(server, now);
  } else if (is_dropped(server)) {
    return wire::NoMoreAttempts{wire::ServerLoss{server}};
  }
  known_.insert(server);
  has_[server] = question.attempt;
  if (question.ended >= granted_ || members_.is_spare(server)) {
    acked_[server] = question.checkpoints;
  }
  if (question.attempt == granted_) {
    const wire::Outcome& outcome = question.outcome;
    if (outcome.state == OutcomeState::failed_for_good && outcome.failure && server != setup_.own) {
      // All of its processes were killed, and so was the guard that could start others: the same as its loss.
      gone_.insert(server);
      fail(wire::ServerLoss{server}, now);
      return wire::NoMoreAttempts{released_ ? reason_ : wire::EndReason(wire::ServerLoss{server})};
    }
    if (outcome.state == OutcomeState::failed_for_good) {
      // A process is still alive there, whatever failed first.
      finish(wire::RankEnded{outcome.rank}, NoRestart::unfinished, now);
    } else if (outcome.state != OutcomeState::running && !outcomes_.contains(server)) {
      outcomes_[server] = outcome;
      if (outcome.state == OutcomeState::failed && outcome.failure) {
        wire::RankFailure failure = *outcome.failure;
        failure.server = server;
        fail(failure, now);
      } else if (outcome.state == OutcomeState::ended_for_good) {
        end_for_good(now);
      }
    }
  }
  if (released_) {
    return wire::NoMoreAttempts{reason_};
  }
  if (ending_ || acked_.contains(server)) {
    return wire::StopAttempt{granted_};
  }
  answered_[server] = now;
  wire::GrantLease grant{question.question, granted_, members_.shape(server)};
  grant.shape.port = port_;
  grant.shape.resume_from = resume_from_;
  grant.shape.why = why_;
  return grant;
}

bool RestartPolicy::takes_orders(const std::string& server) const {
  const auto found = has_.find(server);  // a job that has not started yet would miss the order
  return released_ || (found != has_.end() && found->second == granted_);
}

std::set<std::string> RestartPolicy::ended_there(Seconds now) const {
  std::set<std::string> servers = LaunchPolicy::ended_there(now);
  for (const auto& [server, outcome] : outcomes_) {
    servers.insert(server);
  }
  return servers;
}

// A user has stopped a job, and no other job should be stopped because of that.
void RestartPolicy::end_for_good(Seconds now) {
  if (ending_ && failure_) {
    finish(wire::end_reason(*failure_), NoRestart::stopped, now);
  } else {
    finish(std::nullopt, NoRestart::stopped, now);
  }
}

// The first failure of an attempt decides whether another one follows. A failure after a peer's is replaced
// by the cause of the peer's failure.
void RestartPolicy::fail(const wire::Cause& cause, Seconds now) {
  const bool after_peer = is_after_peer(cause);
  const bool gives_way = is_after_peer(failure_) || (!decided_ && is_told_to_end(failure_) && is_loss(cause));
  if (released_ || (failure_ && (!gives_way || after_peer))) {
    return;
  }
  if (!failure_) {
    failed_at_ = now;
  }
  failure_ = cause;
  decided_ = false;
  if (!after_peer) {
    decide(now);
  }
}

bool RestartPolicy::is_wanted(const wire::Cause& cause) const {
  const RestartSetup::Kinds& kinds = restarts_.kinds;
  if (kinds.any) {
    return true;
  }
  if (is_loss(cause)) {
    return kinds.lost;
  }
  if (std::holds_alternative<wire::Hang>(cause)) {
    return kinds.hang;
  }
  switch (std::get<wire::RankFailure>(cause).ending.kind) {
    case wire::EndKind::exit:
      return kinds.exit;
    case wire::EndKind::signal:
      return kinds.signal;
    case wire::EndKind::out_of_memory:
      return kinds.out_of_memory;
    case wire::EndKind::gone:
      return kinds.gone;
  }
  return false;
}

void RestartPolicy::decide(Seconds now) {
  const wire::Cause& cause = *failure_;
  decided_ = granted_ > restarts_.most || !may_give_way(now);
  if (!decided_) {
    return;
  }
  const bool sick = members_.blame(cause);
  const auto* failure = failure_in(failure_);
  const bool exited = failure != nullptr && failure->ending.kind == wire::EndKind::exit;
  const std::pair<wire::Cause, std::string> place{cause, resume_from_};
  if (granted_ > restarts_.most) {
    finish(wire::end_reason(cause), std::nullopt, now);
  } else if (!is_wanted(cause)) {
    finish(wire::end_reason(cause), NoRestart::cause, now);
  } else if (exited && restarts_.final_codes.contains(failure->ending.code)) {
    finish(wire::end_reason(cause), NoRestart::exit_code, now);
  } else if (exited && !sick && place_ == place) {
    finish(wire::end_reason(cause), NoRestart::repeated, now);  // a third attempt would end at the same point
  } else {
    place_.reset();
    if (exited) {
      place_ = place;
    }
    end_at_ = failed_at_ + (failure != nullptr ? setup_.grace : Seconds(0));
  }
}

// Whether this failure, which may not allow another attempt, may be a consequence of the loss of a server,
// which does allow it: either of a peer that has been silent since, or of its own server.
bool RestartPolicy::may_give_way(Seconds now) const {
  if (restarts_.kinds.any) {
    return false;
  }
  const auto answered = [this](const std::string& name) {
    const auto found = answered_.find(name);
    return name == setup_.own || found == answered_.end() ? Seconds::max() : found->second;
  };
  if (is_after_peer(failure_)) {
    return std::ranges::any_of(members_.names(), [&](const std::string& name) {
      return known_.contains(name) && answered(name) < failed_at_;
    });
  }
  if (!restarts_.kinds.lost || is_wanted(*failure_) || !is_told_to_end(failure_)) {
    return false;
  }
  const std::string& server = failure_in(failure_)->server;
  return server != setup_.own &&
         (now < failed_at_ + departure || answered(server) < now - setup_.timeout / 2);
}

void RestartPolicy::lead(Seconds now) {
  const auto& names = members_.names();
  if (std::ranges::all_of(names, [this](const std::string& name) {
        const auto found = outcomes_.find(name);
        return found != outcomes_.end() && found->second.state == OutcomeState::succeeded;
      })) {
    finish(std::nullopt, std::nullopt, now);
    return;
  }
  if (!ending_) {
    for (const std::string& name : names) {
      const bool silent =
          known_.contains(name) && name != setup_.own && now > answered_.at(name) + setup_.timeout;
      if (acked_.contains(name) || silent) {
        fail(wire::ServerLoss{name}, now);
      }
    }
    const bool all_ended =
        std::ranges::all_of(names, [this](const auto& name) { return outcomes_.contains(name); });
    if (failure_ && !decided_ && now >= failed_at_ + (all_ended ? peer_delay : longest_peer_delay)) {
      decide(now);
    }
    if (failure_ && decided_ && !released_ && now >= end_at_) {
      const bool all_known =
          std::ranges::all_of(names, [this](const std::string& name) { return known_.contains(name); });
      if (all_known) {
        ending_ = killing_ = true;
        acts_.broadcast(wire::StopAttempt{granted_});
      } else if (is_late(now)) {
        // Nothing is known about the lease of a member that never connected.
        finish(wire::end_reason(*failure_), NoRestart::unreached, now);
      }
    }
  }
  if (ending_ && !released_ && ended_ >= granted_ && now >= quiet_until_) {
    begin_next(now);
  }
}

void RestartPolicy::end_hung(const wire::Hang& hang, bool restart, Seconds now) {
  if (released_) {
    end(hang, now);
  } else if (restart) {
    fail(hang, now);
  } else {
    finish(hang, NoRestart::hang, now);
  }
}

bool RestartPolicy::should_watch() const {
  return LaunchPolicy::should_watch() && (released_ || (!failure_ && !ending_));
}

std::vector<std::string> RestartPolicy::present() const {
  std::vector<std::string> servers;
  std::ranges::copy_if(members_.names(), std::back_inserter(servers),
                       [this](const std::string& name) { return !is_gone(name); });
  return servers;
}

// Starts the next attempt, once no process of this one can be alive.
void RestartPolicy::begin_next(Seconds now) {
  std::vector<std::string> silent;
  for (const std::string& name : members_.names()) {
    if (!acked_.contains(name) && name != setup_.own) {
      silent.push_back(name);
      if (times_.waits_for_silent_leases &&
          now <= answered_.at(name) + setup_.timeout + times_.longest_kill) {
        return;
      }
    }
  }
  std::vector<std::string> members =
      members_.without({silent.begin(), silent.end()}, now, setup_.timeout / 2);
  const wire::Cause cause =
      !silent.empty() && is_after_peer(failure_) ? wire::Cause(wire::ServerLoss{silent.front()}) : *failure_;
  if (static_cast<int>(members.size()) < restarts_.least || granted_ > restarts_.most) {
    finish(silent.empty() ? wire::end_reason(cause) : wire::EndReason(wire::ServerLoss{silent.front()}),
           NoRestart::too_few_servers, now);
    return;
  }
  if (!begin_at_) {
    shorts_ = now - begun_ < short_attempt ? shorts_ + 1 : 1;
    const double pause = shorts_ > 1 ? std::min(std::exp2(shorts_ - 2), times_.longest_pause.count()) : 0;
    begin_at_ = now + Seconds(pause);
  }
  if (now < *begin_at_) {
    return;
  }
  resume_from_.clear();
  for (const std::string& name : acked_[members.front()]) {
    const bool everywhere = std::ranges::all_of(members, [&](const std::string& member) {
      return std::ranges::find(acked_[member], name) != acked_[member].end();
    });
    if (everywhere) {
      resume_from_ = name;
      break;
    }
  }
  why_ = cause;
  std::vector<std::string> without;
  bool sick = false;
  for (const std::string& name : members_.names()) {
    if (std::ranges::find(members, name) != members.end()) {
      continue;
    }
    without.push_back(name);
    if (members_.is_sick(name)) {
      sick = true;
      restart_acts_.tell(name, wire::MarkSick{members_.sickness(name)});
    }
  }
  restart_acts_.record_attempt(granted_, begun_, failed_at_, now, cause, without, sick);
  members_.become(members);
  port_ = restart_acts_.choose_port();
  ++granted_;
  ending_ = false;
  failure_.reset();
  begin_at_.reset();
  outcomes_.clear();
  acked_.clear();
  gone_.clear();
  answered_.clear();
  for (const std::string& name : members) {
    answered_[name] = now;
  }
  begun_ = now;
  ask(now);  // its own ranks first, because a restarted coordinator reads their record
  if (outcome_.state != OutcomeState::running) {
    finish(wire::end_reason(cause), NoRestart::unfinished, now);
  }
  acts_.broadcast(wire::AskNow{});
}

// ---- Both

void RestartPolicy::finish(const std::optional<wire::EndReason>& reason, std::optional<NoRestart> why,
                           Seconds now) {
  if (released_) {
    return;
  }
  if (std::max(granted_, attempt_) > restarts_.most) {
    why.reset();
  }
  released_ = true;
  // The end of a dropped server does not count for the launch.
  const bool left_out = reason == wire::EndReason(wire::ServerLoss{setup_.own});
  std::vector<std::string> ended;
  for (const LaunchJob& each : jobs_) {
    if (left_out || (kills_ != 0 && reason && !own_ends_.contains(each.id))) {
      ended.push_back(each.id);
    }
  }
  const wire::AttemptsOver over{reason, why};
  restart_acts_.record(over);
  restart_acts_.release(over, ended);
  if (is_coordinator()) {
    for (const std::string& name : others_) {
      if (!members_.is_member(name)) {
        mark_gone(name, wire::GoneHow::left);
      }
    }
    acts_.broadcast(wire::NoMoreAttempts{reason});
  }
  if (reason) {
    end(*reason, now);
  }
  kills_ = 0;
  for (const KeptEnd& end : kept_ends_) {
    LaunchPolicy::note_end(end.job, end.failure, now);
  }
}

void RestartPolicy::tick(Seconds now) {
  if (released_) {
    return;
  }
  notice_ends(now);
  if (now >= next_question_) {
    ask(now);
  }
  if (is_coordinator() && !released_) {
    lead(now);
  }
  if (!released_) {
    keep_lease(now);
  }
}

std::vector<wire::LinkMessage> RestartPolicy::welcome(const std::string& server) {
  std::vector<wire::LinkMessage> messages = LaunchPolicy::welcome(server);
  if (released_) {
    messages.emplace_back(wire::NoMoreAttempts{reason_});
  }
  return messages;
}

void RestartPolicy::hear(const std::string& server, const wire::LinkMessage& message, Seconds now) {
  if (std::holds_alternative<wire::Hello>(message) && members_.is_member(server) &&
      !known_.contains(server)) {
    known_.insert(server);  // its first lease began before this, and no answer has renewed it yet
    answered_[server] = now;
  }
  if (std::holds_alternative<wire::Welcome>(message)) {
    next_question_ = now;  // no question from before this link was received
  }
  const auto* ask_lease = std::get_if<wire::AskLease>(&message);
  const auto* grant = std::get_if<wire::GrantLease>(&message);
  const auto* stop = std::get_if<wire::StopAttempt>(&message);
  const auto* over = std::get_if<wire::NoMoreAttempts>(&message);
  const auto* end_launch = std::get_if<wire::EndLaunch>(&message);
  const auto* sick = std::get_if<wire::MarkSick>(&message);
  const auto reports_end = [&] {
    return end_launch != nullptr || std::holds_alternative<wire::JobFailed>(message) ||
           std::holds_alternative<wire::Left>(message) || std::holds_alternative<wire::JobStopped>(message) ||
           std::holds_alternative<wire::LastLines>(message);
  };
  if (ask_lease != nullptr && is_coordinator()) {
    mark_heard(server, now);
    restart_acts_.tell(server, answer(server, *ask_lease, now));
  } else if (std::holds_alternative<wire::AskNow>(message)) {
    next_question_ = now;
  } else if (sick != nullptr && !is_coordinator()) {
    restart_acts_.mark_sick(sick->mark);
  } else if (grant != nullptr && !is_coordinator()) {
    if (!released_) {
      take_grant(*grant, now);
    }
  } else if (stop != nullptr && !is_coordinator()) {
    if (stop->attempt >= attempt_ && !released_) {
      killing_ = true;
      ended_ = is_resting() ? std::max(ended_, stop->attempt) : ended_;
    }
  } else if (over != nullptr && !is_coordinator()) {
    finish(over->reason, std::nullopt, now);
  } else if (is_coordinator() && is_dropped(server) && reports_end()) {
    // A dropped server stops on its own.
  } else if (end_launch != nullptr && !released_ && !is_coordinator()) {
    finish(end_launch->reason, std::nullopt, now);
  } else {
    LaunchPolicy::hear(server, message, now);
    return;
  }
  mark_heard(server, now);
}

void RestartPolicy::restore(const wire::LaunchEntry& entry, Seconds now) {
  LaunchPolicy::restore(entry, now);
  if (const auto* over = std::get_if<wire::AttemptsOver>(&entry)) {
    finish(over->reason, over->why, now);
  }
}

void RestartPolicy::notice_silence(Seconds now) {
  if (released_) {
    LaunchPolicy::notice_silence(now);
  }
}

bool RestartPolicy::try_to_leave(Seconds now, bool listening) {
  return released_ && LaunchPolicy::try_to_leave(now, listening);
}

}  // namespace remote::rules
