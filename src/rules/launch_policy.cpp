#include "rules/launch_policy.hpp"

#include <algorithm>
#include <utility>

#include "rules/first_cause.hpp"

namespace remote::rules {
namespace {

using wire::LinkMessage;

Moment round_down(Seconds seconds) {
  return std::chrono::floor<Moment>(seconds);
}

FailureFacts describe(const HeardFailure& heard) {
  const wire::EndKind kind = heard.failure.ending.kind;
  return {round_down(heard.heard), heard.failure.rank, heard.failure.after_peer, kind == wire::EndKind::gone,
          kind == wire::EndKind::signal || kind == wire::EndKind::out_of_memory};
}

}  // namespace

LaunchPolicy::LaunchPolicy(LaunchSetup setup, std::vector<LaunchJob> jobs, Seconds now, LaunchActs& acts)
    : setup_(std::move(setup)),
      jobs_(std::move(jobs)),
      acts_(acts),
      start_(now),
      beat_(std::min(Seconds(5), std::max(setup_.timeout / 20, Seconds(0.25)))),
      time_to_come_(std::min(Seconds(30), setup_.timeout)) {
  std::ranges::copy_if(setup_.servers, std::back_inserter(others_),
                       [this](const std::string& server) { return server != setup_.own; });
}

void LaunchPolicy::mark_gone(const std::string& server, wire::GoneHow how) {
  const auto [found, is_new] = gone_.try_emplace(server, how);
  if (is_new || std::exchange(found->second, how) != how) {
    acts_.record(wire::ServerGone{server, how});
  }
}

void LaunchPolicy::mark_heard(const std::string& server, Seconds now) {
  if (!last_heard_.contains(server)) {
    acts_.record(wire::ServerHeard{server});
  }
  last_heard_[server] = now;
  next_silence_ = std::min(next_silence_, now + setup_.timeout);
}

bool LaunchPolicy::is_watched() const {
  return std::ranges::any_of(last_heard_, [this](const auto& each) { return !is_gone(each.first); });
}

void LaunchPolicy::restore(const wire::LaunchEntry& entry, Seconds now) {
  if (const auto* heard = std::get_if<wire::ServerHeard>(&entry)) {
    last_heard_[heard->server] = now;
    next_silence_ = std::min(next_silence_, now + setup_.timeout);
  } else if (const auto* gone = std::get_if<wire::ServerGone>(&entry)) {
    gone_[gone->server] = gone->how;
  } else if (const auto* left = std::get_if<wire::ServerLeftOut>(&entry)) {
    if (left->server == setup_.own) {
      own_left_ = left->reason;
    } else {
      left_.insert(left->server);
    }
  } else if (const auto* ending = std::get_if<wire::LaunchEnding>(&entry)) {
    reason_ = ending->reason;
    end_at_ = now + (wire::has_grace(*reason_) ? setup_.grace : Seconds(0));
  }
}

void LaunchPolicy::report(const LinkMessage& message) {
  if (!is_coordinator()) {
    reports_.push_back(message);
  }
  acts_.broadcast(message);
}

bool LaunchPolicy::is_gone(const std::string& server) const {
  return gone_.contains(server);
}

bool LaunchPolicy::jobs_have_ended() const {
  return std::ranges::all_of(jobs_, &LaunchJob::ended);
}

// The first reason counts. Ranks get the grace unless a server is lost or all of them hang.
void LaunchPolicy::end(const wire::EndReason& reason, Seconds now) {
  if (reason_ || setup_.ends_alone) {
    return;
  }
  reason_ = reason;
  end_at_ = now + (wire::has_grace(reason) ? setup_.grace : Seconds(0));
  acts_.record(wire::LaunchEnding{reason});
  acts_.broadcast(wire::EndLaunch{reason});
}

// On the coordinator: an elastic launch continues without a server, as long as it has enough others.
void LaunchPolicy::leave_out(const std::string& server, const wire::EndReason& reason, Seconds now) {
  left_.insert(server);
  acts_.broadcast(wire::ContinueWithout{server, reason});
  acts_.record(wire::ServerLeftOut{server, reason});
  if (static_cast<int>(setup_.servers.size()) - static_cast<int>(left_.size()) < setup_.needed) {
    end(reason, now);
  }
}

void LaunchPolicy::end_hung(const wire::Hang& hang, bool /*restart*/, Seconds now) {
  end(hang, now);
}

std::vector<std::string> LaunchPolicy::present() const {
  std::vector<std::string> servers;
  const auto is_present = [this](const std::string& server) {
    return !is_gone(server) && !left_.contains(server);
  };
  if (is_present(setup_.own)) {
    servers.push_back(setup_.own);
  }
  std::ranges::copy_if(others_, std::back_inserter(servers), is_present);
  return servers;
}

std::vector<LinkMessage> LaunchPolicy::welcome(const std::string& server) {
  std::vector<LinkMessage> messages = {wire::Welcome{}};
  if (reason_) {
    messages.emplace_back(wire::EndLaunch{*reason_});
  }
  if (left_.contains(server)) {
    messages.emplace_back(wire::ContinueWithout{server, wire::ServerLoss{server}});
  }
  return messages;
}

void LaunchPolicy::hear(const std::string& server, const LinkMessage& message, Seconds now) {
  if (const auto* end_launch = std::get_if<wire::EndLaunch>(&message)) {
    // A dropped server stops on its own: without the others, its agent has probably given up.
    if (!left_.contains(server)) {
      end(end_launch->reason, now);
    }
  } else if (const auto* left = std::get_if<wire::Left>(&message); left != nullptr && is_coordinator()) {
    leave_out(server, left->reason, now);
  } else if (const auto* without = std::get_if<wire::ContinueWithout>(&message);
             without != nullptr && !is_coordinator()) {
    acts_.record(wire::ServerLeftOut{without->server, without->reason});
    if (without->server == setup_.own) {
      // This server was silent for too long and is back. The others have continued, and its ranks must not
      // join them.
      own_left_ = wire::ServerLoss{setup_.own};
    }
  } else if (const auto* failed = std::get_if<wire::JobFailed>(&message);
             failed != nullptr && is_coordinator()) {
    failed_there_.insert(server);
    failures_.push_back({failed->failure, now});
    failures_.back().failure.server = server;
  } else if (const auto* stopped = std::get_if<wire::JobStopped>(&message);
             stopped != nullptr && is_coordinator()) {
    const Seconds took = std::chrono::milliseconds(stopped->milliseconds);
    stops_.push_back({stopped->rank, server, now - took, now});
  } else if (std::holds_alternative<wire::Bye>(message)) {
    mark_gone(server, wire::GoneHow::said_bye);
    if (is_coordinator()) {
      acts_.tell(server, wire::ByeNoted{});
    }
  } else if (std::holds_alternative<wire::ByeNoted>(message)) {
    is_bye_noted_ = true;
  }
  mark_heard(server, now);
}

void LaunchPolicy::notice_silence(Seconds now) {
  if (now <= next_silence_) {
    return;
  }
  next_silence_ = Seconds::max();
  std::vector<std::string> silent;
  for (const std::string& server : others_) {
    const auto heard = last_heard_.find(server);
    if (heard == last_heard_.end() || is_gone(server)) {
      continue;
    }
    if (now - heard->second > setup_.timeout) {
      silent.push_back(server);
    } else {
      next_silence_ = std::min(next_silence_, heard->second + setup_.timeout);
    }
  }
  for (const std::string& server : silent) {
    mark_gone(server, wire::GoneHow::lost);
  }
  if (!silent.empty() && lost_.empty()) {
    lost_at_end_ = jobs_have_ended() && std::ranges::all_of(others_, [this](const std::string& server) {
                     return is_gone(server);
                   });
  }
  lost_.insert(lost_.end(), silent.begin(), silent.end());
  for (const std::string& server : silent) {
    if (setup_.needed != 0 && is_coordinator()) {
      leave_out(server, wire::ServerLoss{server}, now);
    } else {
      end(wire::ServerLoss{server}, now);
    }
  }
}

void LaunchPolicy::discount_pause(Seconds pause) {
  for (auto& [server, heard] : last_heard_) {
    heard += pause;
  }
}

void LaunchPolicy::note_end(std::size_t index, const std::optional<wire::RankFailure>& failure, Seconds now) {
  LaunchJob& job = jobs_.at(index);
  job.ended = true;
  if (!failure) {
    if (job.stopped_for) {
      stops_.push_back({job.rank, setup_.own, now - *job.stopped_for, now});
      report(wire::JobStopped{job.rank,
                              std::chrono::floor<std::chrono::milliseconds>(*job.stopped_for).count()});
    }
    return;
  }
  job.failed = true;
  failures_.push_back({*failure, now});
  report(wire::JobFailed{*failure});
  const wire::EndReason reason = wire::RankEnded{failure->rank};
  // In an elastic launch, if an agent was killed or is gone, it has left, and the others continue; if it
  // exits, the launch has ended. Without the first server's agent, the others cannot find each other.
  const bool has_left =
      failure->ending.kind == wire::EndKind::signal || failure->ending.kind == wire::EndKind::gone;
  if (setup_.needed != 0 && !is_coordinator() && has_left) {
    report(wire::Left{reason});
    own_left_ = reason;
    acts_.record(wire::ServerLeftOut{setup_.own, reason});
  } else {
    end(reason, now);
  }
}

bool LaunchPolicy::has_launcher_failed(Seconds now) {
  rank_failed_at_ = rank_failed_at_.value_or(now);
  return now >= *rank_failed_at_ + setup_.grace + launcher_time;
}

void LaunchPolicy::note_failed_rank(std::size_t /*job*/, const wire::RankFailure& failure, Seconds now) {
  if (reason_ || setup_.ends_alone || !has_launcher_failed(now)) {
    return;
  }
  failures_.push_back({failure, now});
  report(wire::JobFailed{failure});
  end(wire::RankEnded{failure.rank}, now);
  end_at_ = now;  // the grace is over
}

std::vector<std::string> LaunchPolicy::jobs_to_kill(Seconds now) {
  // If an agent has left the launch, its processes would continue to train.
  const bool own = own_left_ && kills_ == 0;
  if (!own && (!reason_ || now < end_at_ || kills_ >= kill_rounds)) {
    return {};
  }
  std::vector<std::string> ids;
  for (const LaunchJob& job : jobs_) {
    if (!job.ended || (job.failed && kills_ == 0)) {
      ids.push_back(job.id);
    }
  }
  kills_ = ids.empty() ? kill_rounds : kills_ + 1;
  return ids;
}

const HeardFailure* LaunchPolicy::first_failure() const {
  std::vector<FailureFacts> facts;
  std::ranges::transform(failures_, std::back_inserter(facts), describe);
  const auto first = find_first_failure(facts);
  return first ? &failures_[*first] : nullptr;
}

const UserStop* LaunchPolicy::first_stop(const HeardFailure* failure) const {
  const auto found = std::ranges::find_if(stops_, [&](const UserStop& stop) {
    return failure == nullptr ||
           follows_stop(describe(*failure), {round_down(stop.began), round_down(stop.ended)});
  });
  return found == stops_.end() ? nullptr : &*found;
}

LaunchVerdict LaunchPolicy::verdict(const std::vector<JobResult>& results) const {
  std::optional<wire::EndReason> reason = reason_;
  for (const JobResult& result : results) {
    if (!reason) {
      reason = result.ended_because;
    }
  }
  const HeardFailure* failure = first_failure();
  const UserStop* stop = first_stop(failure);
  LaunchVerdict verdict;
  const auto* hang = reason ? std::get_if<wire::Hang>(&*reason) : nullptr;
  const auto* loss = reason ? std::get_if<wire::ServerLoss>(&*reason) : nullptr;
  const auto* rank = reason ? std::get_if<wire::RankEnded>(&*reason) : nullptr;
  const auto succeeded = [](const JobResult& result) { return result.succeeded; };
  const bool went_well = failure == nullptr && std::ranges::all_of(results, succeeded);
  const bool after_peer = failure != nullptr && stop == nullptr && failure->failure.after_peer;
  if (hang != nullptr) {
    verdict.end = LaunchEnd::hung;
    verdict.seconds = hang->seconds;
  } else if (!lost_.empty() && lost_at_end_ && went_well) {
    verdict.server = lost_.front();
  } else if (loss != nullptr || (!lost_.empty() && (setup_.ends_alone || after_peer))) {
    verdict.end = LaunchEnd::lost;
    if (others_.size() > 1 &&
        std::set(lost_.begin(), lost_.end()) == std::set(others_.begin(), others_.end())) {
      verdict.server = setup_.own;  // as in find_lost_server()
      verdict.is_cut_off = true;
    } else {
      verdict.server = loss != nullptr ? loss->server : lost_.front();
    }
  } else if (stop != nullptr) {
    verdict.end = LaunchEnd::killed;
    if (failure != nullptr || std::ranges::any_of(results, succeeded)) {
      verdict.rank = stop->rank;
      verdict.server = stop->server;
    }
  } else if (failure != nullptr && (rank != nullptr || setup_.ends_alone)) {
    verdict.end = LaunchEnd::failed;
    verdict.rank = failure->failure.rank;
    verdict.server = failure->failure.server;
    verdict.ending = failure->failure.ending;
  } else if (rank != nullptr) {
    verdict.end = LaunchEnd::failed;
    verdict.rank = rank->rank;
  } else {
    std::ranges::copy_if(others_, std::back_inserter(verdict.unheard), [this](const std::string& server) {
      const auto gone = gone_.find(server);
      return !last_heard_.contains(server) && (gone == gone_.end() || gone->second != wire::GoneHow::left);
    });
    if (verdict.unheard.empty()) {
      verdict.end = std::ranges::all_of(results, succeeded) ? LaunchEnd::succeeded : LaunchEnd::killed;
    }
  }
  return verdict;
}

std::vector<std::string> LaunchPolicy::silent(Seconds now) const {
  std::vector<std::string> servers;
  if (is_late(now) && last_heard_.size() < others_.size()) {
    std::ranges::copy_if(others_, std::back_inserter(servers),
                         [this](const std::string& server) { return !last_heard_.contains(server); });
  }
  return servers;
}

std::set<std::string> LaunchPolicy::ended_there(Seconds now) const {
  std::set<std::string> servers = failed_there_;
  for (const auto& [server, how] : gone_) {
    servers.insert(server);
  }
  const std::vector<std::string> not_come = silent(now);
  servers.insert(not_come.begin(), not_come.end());
  return servers;
}

bool LaunchPolicy::try_to_leave(Seconds now, bool listening) {
  if (!jobs_have_ended()) {
    return kills_ >= kill_rounds;
  }
  if (reason_ && kills_ < kill_rounds) {
    return false;
  }
  if (!is_coordinator()) {
    if (!std::exchange(has_said_bye_, true)) {
      report(wire::Bye{});
    }
    return is_bye_noted_ || is_gone(coordinator()) || (!last_heard_.contains(coordinator()) && is_late(now));
  }
  // The coordinator stays as long as others need it. Servers that have not connected yet get their time to do
  // so.
  const std::vector<std::string> not_come = silent(now);
  return !listening || std::ranges::all_of(others_, [&](const std::string& server) {
    return is_gone(server) || std::ranges::find(not_come, server) != not_come.end();
  });
}

}  // namespace remote::rules
