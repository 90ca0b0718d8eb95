#include "agent/launch/lease_queue.hpp"

#include <cstdint>

#include <sodium.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using wire::LeaseAction;
using wire::LeaseTurn;

constexpr rules::Seconds repeat_pause{2};
constexpr rules::Seconds shortest_pause{0.5};
constexpr rules::Seconds longest_pause{5};
constexpr int max_port = 65535;

rules::Seconds choose_random_pause() {
  constexpr std::uint32_t steps = 1000;
  const double share = static_cast<double>(::randombytes_uniform(steps)) / steps;
  return shortest_pause + share * (longest_pause - shortest_pause);
}

// Parses the words of `turn.state` (wait_for_lease.hpp): `keep`, `line`, `held`, or `gone PORT`.
std::optional<wire::LeaseReport> parse_turn_state(const std::vector<std::string>& words) {
  wire::LeaseReport report;
  const std::string state = words.empty() ? "" : words.front();
  if (state == "gone" && words.size() == 2) {
    const auto port = parse_number<int>(words[1]);
    if (!port || *port < 0 || *port > max_port) {
      return std::nullopt;
    }
    report.state = LeaseTurn::started;
    report.port = *port;
    return report;
  }
  if (words.size() != 1 || (state != "keep" && state != "line" && state != "held")) {
    return std::nullopt;
  }
  report.state = state == "held"   ? LeaseTurn::held
                 : state == "line" ? LeaseTurn::in_line
                                   : LeaseTurn::waiting;
  return report;
}

// Formats the line of `turn.order`.
std::string to_turn_order(const wire::LeaseOrder& order) {
  if (order.action == LeaseAction::start) {
    return text::format("go {}\n", order.port);
  }
  return order.action == LeaseAction::take ? "take\n" : "keep\n";
}

}  // namespace

LeaseQueue::LeaseQueue(const Host& host, const wire::LaunchSpec& spec, Path job_folder,
                       std::function<int()> choose_port)
    : spec_(spec), folder_(std::move(job_folder)), machine_(read_machine_digest(host)) {
  if (spec_.server != coordinator()) {
    return;
  }
  std::vector<std::string> servers;
  for (const wire::LaunchServer& server : spec_.servers) {
    servers.push_back(server.name);
  }
  turns_.emplace(std::move(servers), rules::Seconds(spec_.lease_seconds.value_or(60)), std::move(choose_port),
                 choose_random_pause);
}

LeaseQueue::Step LeaseQueue::step(rules::Seconds now, const std::vector<std::string>& missing,
                                  bool coordinator_has_left) {
  Step step;
  if (is_over_) {
    return step;
  }
  std::optional<wire::LeaseReport> report = parse_turn_state(read_job_words(folder_ / "turn.state"));
  if (report) {
    report->machine = machine_;
  }
  if (!turns_) {
    if (report && is_due(coordinator(), *report, now)) {
      step.messages.emplace_back(coordinator(), *report);
    }
    if (!missing.empty()) {
      step.lost = coordinator();
    }
    // Until the coordinator leaves, a new one may need the report.
    is_over_ = report && report->state == LeaseTurn::started && coordinator_has_left;
    return step;
  }
  if (report) {
    turns_->hear(spec_.server, *report);
  }
  if (!missing.empty() && !turns_->has_started_any()) {
    step.lost = missing.front();
    is_over_ = true;
    return step;
  }
  for (const auto& order : turns_->decide(now)) {
    if (order.first == spec_.server) {
      obey(order.second);
    } else if (is_due(order.first, order.second, now)) {
      step.messages.emplace_back(order.first, order.second);
    }
  }
  is_over_ = turns_->is_over();
  return step;
}

void LeaseQueue::hear(const std::string& server, const wire::LinkMessage& message) {
  if (turns_) {
    if (const auto* report = std::get_if<wire::LeaseReport>(&message)) {
      turns_->hear(server, *report);
    }
  } else if (const auto* order = std::get_if<wire::LeaseOrder>(&message)) {
    obey(*order);
  }
}

bool LeaseQueue::is_due(const std::string& server, const wire::LinkMessage& message, rules::Seconds now) {
  const auto sent = sent_.find(server);
  if (sent != sent_.end() && sent->second.message == message && now < sent->second.at + repeat_pause) {
    return false;
  }
  sent_[server] = {message, now};
  return true;
}

void LeaseQueue::obey(const wire::LeaseOrder& order) {
  if (order_ != order && put_file(folder_ / "turn.order", to_turn_order(order))) {
    order_ = order;
  }
}

}  // namespace remote::agent
