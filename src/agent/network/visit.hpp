#pragma once

#include <string>

#include "agent/network/talks.hpp"

namespace remote::agent {

constexpr int max_block = 32000;
constexpr int ping_count = 20;
constexpr milliseconds flow_wait{10'000};  // longest pause in a measurement

// The listener's side of a connection: see answers.hpp.
class Visit final : public Talk {
 public:
  Visit(Descriptor socket, std::string greeting) : Talk(std::move(socket)), greeting_(std::move(greeting)) {}

  void begin() override;

 private:
  enum class Step { order, block, ping, flow, end };

  void take(std::string_view data) override;
  void stop(int why) override;
  void take_order(std::string_view data);
  void obey();

  std::string greeting_;
  Step step_ = Step::order;
  std::string order_;
  std::size_t count_ = 0;  // number of bytes or pings
  std::size_t block_ = 0;
  Clock::time_point first_{};
};

}  // namespace remote::agent
