#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ssh/connection.hpp"

namespace remote::ssh {

// The caller's handle for a channel that its connection drives. It may be destroyed at any time, even from
// within the sink.
template <typename State>
class ChannelHandle final : public Channel {
 public:
  explicit ChannelHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~ChannelHandle() override {
    if (!is_parked_) {
      state_->release();
    }
  }
  ChannelHandle(const ChannelHandle&) = delete;
  ChannelHandle& operator=(const ChannelHandle&) = delete;

  std::size_t writable() const override { return state_->writable(); }
  void write(std::string_view data) override { state_->write(data); }
  void close_input() override { state_->close_input(); }
  void pause(bool paused) override { state_->pause(paused); }
  bool finished() const override { return state_->finished(); }
  std::optional<ExitStatus> status() const override { return state_->status(); }
  bool park() override {
    if constexpr (requires { state_->park(); }) {
      is_parked_ = state_->park();
    }
    return is_parked_;
  }
  bool is_resumed() const override {
    if constexpr (requires { state_->is_resumed(); }) {
      return state_->is_resumed();
    }
    return false;
  }
  bool opening() const override { return state_->opening(); }
  std::string refusal() const override { return state_->refusal(); }
  bool output_ended() const override { return state_->output_ended(); }

 private:
  std::shared_ptr<State> state_;
  bool is_parked_ = false;
};

}  // namespace remote::ssh
