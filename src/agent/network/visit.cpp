#include "agent/network/visit.hpp"

#include <algorithm>
#include <vector>

#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t max_order = 100;
constexpr milliseconds order_wait = connect_wait + 2 * talk_wait;

}  // namespace

void Visit::begin() {
  send(greeting_, order_wait);
}

void Visit::take(std::string_view data) {
  switch (step_) {
    case Step::order:
      take_order(data);
      break;
    case Step::block:
      count_ += data.size();
      break;
    case Step::ping:
      if (data.find('\n') != std::string_view::npos && ++count_ == ping_count) {
        finish();
      } else if (data.find('\n') != std::string_view::npos) {
        send("pong\n", talk_wait);
      }
      break;
    case Step::flow:
      first_ = count_ == 0 ? Clock::now() : first_;
      count_ += data.size();
      expect(flow_wait);
      break;
    case Step::end:
      break;
  }
  if (step_ == Step::block && count_ >= block_) {
    step_ = Step::end;
    send("got\n" + std::string(block_, '.'), talk_wait);
  }
}

void Visit::take_order(std::string_view data) {
  const std::size_t end = std::min(data.find('\n'), data.size());
  order_ += data.substr(0, std::min(end, max_order));
  count_ += data.size();
  if (end < data.size()) {
    obey();
  } else if (order_.size() == max_order) {
    finish();
  }
}

void Visit::obey() {
  const std::vector<std::string> words = split_words(order_);
  const std::string word = words.empty() ? "" : words.front();
  if (word == "block" && words.size() == 2) {
    block_ = std::min<std::size_t>(parse_number<unsigned>(words.back()).value_or(0), max_block);
    step_ = block_ > 0 ? Step::block : Step::end;
    expect(order_wait);
  } else if (word == "ping" || word == "take") {
    step_ = word == "ping" ? Step::ping : Step::flow;
    count_ = 0;
    if (step_ == Step::ping) {
      send("pong\n", talk_wait);
    } else {
      expect(flow_wait);
    }
  }
  if (step_ == Step::order || step_ == Step::end) {
    finish();
  }
}

void Visit::stop(int why) {
  if (step_ != Step::flow || why != closed) {
    finish();
    return;
  }
  step_ = Step::end;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      Clock::now() - (count_ == 0 ? Clock::now() : first_));
  send_last(text::format("{} {}\n", count_, std::max<std::chrono::microseconds::rep>(took.count(), 1)));
}

}  // namespace remote::agent
