#include "rules/sweep_policy.hpp"

#include <algorithm>

namespace remote::rules {
namespace {

constexpr Seconds ask_again{5};           // until a server that got no point asks again
constexpr Seconds ask_after_trouble{60};  // until a server that could not start a point asks again
constexpr int max_troubles = 3;           // in a row; then it stops asking

}  // namespace

void SweepGiver::restore(const wire::SweepEntry& entry) {
  if (const auto* given = std::get_if<wire::PointGiven>(&entry)) {
    std::erase(left_, given->point);
    given_.emplace_back(given->point, given->server);
  } else if (const auto* returned = std::get_if<wire::PointReturned>(&entry)) {
    std::erase_if(given_, [&](const auto& each) { return each.first == returned->point; });
    left_.push_back(returned->point);
  }
}

void SweepGiver::hear(const std::string& server, const wire::SweepMessage& message, const Send& send) {
  const auto has = [&](const std::string& point) {
    return std::ranges::find(given_, std::pair(point, server)) != given_.end();
  };
  if (const auto* known = std::get_if<wire::KnownPoints>(&message)) {
    std::ranges::copy_if(known->points, std::inserter(known_[server], known_[server].end()), has);
  } else if (std::holds_alternative<wire::ReportDone>(message)) {
    // Points that were given to this server but are unknown there, because the message was lost.
    const std::set<std::string> reported = std::exchange(known_[server], {});
    known_.erase(server);
    for (const auto& [point, owner] : given_) {
      if (owner == server && !reported.contains(point) && !ended_.contains(point)) {
        send(server, wire::GivePoint{point});
      }
    }
  } else if (std::holds_alternative<wire::WantPoint>(message)) {
    const auto point = give_next(server);
    send(server, point ? wire::SweepMessage(wire::GivePoint{*point}) : wire::NoPoint{});
  } else if (const auto* ended = std::get_if<wire::EndedPoints>(&message)) {
    std::ranges::copy_if(ended->points, std::inserter(ended_, ended_.end()), has);
  } else if (const auto* back = std::get_if<wire::ReturnPoint>(&message)) {
    if (has(back->point) && !ended_.contains(back->point) &&
        journal_.write(wire::PointReturned{back->point})) {
      std::erase(given_, std::pair(back->point, server));
      left_.push_back(back->point);
    }
  }
}

std::optional<std::string> SweepGiver::give_next(const std::string& server) {
  if (left_.empty() || !journal_.write(wire::PointGiven{left_.front(), server})) {
    return std::nullopt;
  }
  std::string point = left_.front();
  left_.pop_front();
  given_.emplace_back(point, server);
  return point;
}

bool SweepGiver::is_over(const std::set<std::string>& silent) const {
  return left_.empty() && std::ranges::all_of(given_, [&](const auto& each) {
           return ended_.contains(each.first) || silent.contains(each.second);
         });
}

SweepTaker::SweepTaker(std::set<std::string> begun, std::map<std::string, int> running, SweepJournal& journal,
                       SweepTakerActs& acts)
    : begun_(std::move(begun)), running_(std::move(running)), journal_(journal), acts_(acts) {
  std::ranges::copy_if(begun_, std::inserter(ended_, ended_.end()),
                       [this](const std::string& point) { return !running_.contains(point); });
}

void SweepTaker::link() {
  linked_ = true;
  asked_ = false;
  ask_at_ = Seconds(0);
  const auto report = [this]<typename Message>(Message message, const std::set<std::string>& points) {
    for (const std::string& point : points) {
      message.points.push_back(point);
      if (message.points.size() == wire::max_points_in_message) {
        acts_.tell(std::exchange(message, {}));
      }
    }
    if (!message.points.empty()) {
      acts_.tell(message);
    }
  };
  std::set<std::string> known = begun_;
  known.insert(owed_.begin(), owed_.end());
  report(wire::KnownPoints{}, known);
  report(wire::EndedPoints{}, ended_);
  acts_.tell(wire::ReportDone{});
}

void SweepTaker::unlink() {
  linked_ = asked_ = false;
  if (owed_.empty()) {
    give_back_lease();
  }
}

void SweepTaker::give_back_lease() {
  if (lease_) {
    acts_.give_back(*lease_);
    lease_.reset();
  }
}

void SweepTaker::hear(const wire::SweepMessage& message, Seconds now) {
  if (const auto* give = std::get_if<wire::GivePoint>(&message)) {
    asked_ = false;
    if (!begun_.contains(give->point) && std::ranges::find(owed_, give->point) == owed_.end()) {
      owed_.push_back(give->point);
    }
    return;
  }
  if (std::holds_alternative<wire::NoPoint>(message)) {
    asked_ = false;
    ask_at_ = now + ask_again;
  } else if (std::holds_alternative<wire::SweepOver>(message)) {
    over_ = true;
  } else {
    return;
  }
  if (owed_.empty()) {
    give_back_lease();
  }
}

void SweepTaker::tick(Seconds now) {
  if (owed_.empty() && (over_ || !linked_ || asked_ || now < ask_at_ || troubles_ >= max_troubles)) {
    return;
  }
  if (!lease_) {
    lease_ = acts_.take_lease();
  }
  if (!lease_) {
    return;
  }
  if (owed_.empty()) {
    asked_ = true;
    acts_.tell(wire::WantPoint{});
    return;
  }
  const std::string point = owed_.front();
  owed_.pop_front();
  begin(point, now);
}

void SweepTaker::begin(const std::string& point, Seconds now) {
  if (!journal_.write(wire::PointBegun{point})) {
    refuse(point, now);
    return;
  }
  begun_.insert(point);
  switch (acts_.start(point, *lease_)) {
    case PointStart::started:
      running_.emplace(point, *lease_);
      lease_.reset();
      troubles_ = 0;
      break;
    case PointStart::exists:
      give_back_lease();
      note_end(point);
      break;
    case PointStart::failed:
      forget(point, now);
      break;
  }
}

void SweepTaker::note_failed(const std::string& point, Seconds now) {
  if (const auto found = running_.find(point); found != running_.end()) {
    acts_.give_back(found->second);
    running_.erase(found);
  }
  forget(point, now);
}

void SweepTaker::forget(const std::string& point, Seconds now) {
  // If this is not written, a later supervisor assumes that the point started here.
  static_cast<void>(journal_.write(wire::PointNotStarted{point}));
  begun_.erase(point);
  refuse(point, now);
}

void SweepTaker::refuse(const std::string& point, Seconds now) {
  give_back_lease();
  ++troubles_;
  ask_at_ = now + ask_after_trouble;
  acts_.tell(wire::ReturnPoint{point});
}

void SweepTaker::note_end(const std::string& point) {
  if (const auto found = running_.find(point); found != running_.end()) {
    acts_.give_back(found->second);
    running_.erase(found);
  }
  if (ended_.insert(point).second) {
    acts_.tell(wire::EndedPoints{{point}});
  }
}

}  // namespace remote::rules
