#include "rules/lease_turns.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace remote::rules {

using wire::LeaseAction;
using wire::LeaseTurn;

LeaseTurns::LeaseTurns(std::vector<std::string> servers, Seconds complete, std::function<int()> choose_port,
                       std::function<Seconds()> choose_pause)
    : servers_(std::move(servers)),
      complete_(complete),
      choose_port_(std::move(choose_port)),
      choose_pause_(std::move(choose_pause)) {
  order_all({});
}

void LeaseTurns::hear(const std::string& server, const wire::LeaseReport& report) {
  if (orders_.contains(server)) {
    reports_[server] = report;
  }
}

const std::map<std::string, wire::LeaseOrder>& LeaseTurns::decide(Seconds now) {
  if (reports_.size() < orders_.size() || orders_.empty()) {
    return orders_;
  }
  if (const wire::LeaseReport* report = find_started()) {
    order_all({LeaseAction::start, report->port});
    return orders_;
  }
  if (orders_.at(servers_.front()).action == LeaseAction::start) {
    return orders_;
  }
  const auto holders = static_cast<std::size_t>(std::ranges::count_if(
      reports_, [](const auto& report) { return report.second.state == LeaseTurn::held; }));
  if (gives_back_) {
    if (holders > 0 || now < resume_at_) {
      return orders_;
    }
    gives_back_ = false;
  }
  if (holders > 0 && !since_) {
    since_ = now;
  }
  if (holders == orders_.size()) {
    order_all({LeaseAction::start, choose_port_()});
  } else if (since_ && now - *since_ > complete_) {
    since_.reset();
    gives_back_ = true;
    resume_at_ = now + choose_pause_();
    order_all({});
  } else {
    order_next();
  }
  return orders_;
}

bool LeaseTurns::has_started_any() const {
  return find_started() != nullptr;
}

bool LeaseTurns::is_over() const {
  return reports_.size() == orders_.size() && std::ranges::all_of(reports_, [](const auto& report) {
           return report.second.state == LeaseTurn::started;
         });
}

const wire::LeaseReport* LeaseTurns::find_started() const {
  const auto found = std::ranges::find_if(
      reports_, [](const auto& report) { return report.second.state == LeaseTurn::started; });
  return found == reports_.end() ? nullptr : &found->second;
}

void LeaseTurns::order_all(const wire::LeaseOrder& order) {
  for (const std::string& server : servers_) {
    orders_[server] = order;
  }
}

void LeaseTurns::order_next() {
  std::vector<std::string> order = servers_;
  std::ranges::sort(order, [this](const std::string& one, const std::string& other) {
    return std::tie(reports_.at(one).machine, one) < std::tie(reports_.at(other).machine, other);
  });
  const auto next = std::ranges::find_if(
      order, [this](const std::string& server) { return reports_.at(server).state != LeaseTurn::held; });
  for (const std::string& server : servers_) {
    const bool may_take = reports_.at(server).state == LeaseTurn::held || server == *next;
    orders_[server] = {may_take ? LeaseAction::take : LeaseAction::wait};
  }
}

}  // namespace remote::rules
