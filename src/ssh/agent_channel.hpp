#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <remote/error.hpp>

#include "ssh/pump.hpp"

namespace remote::ssh {

// How the agent of a channel is started. One thread.
class AgentStart {
 public:
  // `request`: the first bytes for the agent, which are sent at once: if it is there, its answer takes one
  // round trip.
  AgentStart(std::string_view request, AgentFolders folders);

  // What goes to the channel's stdin first.
  const std::string& request() const { return request_; }
  // The channel was parked, so the agent runs: it gets the request alone.
  void resume();
  // Takes the next piece of the channel's output, and returns the agent's own output in it. Throws Error if
  // the server cannot run the agent. `send` gets what installs it.
  std::string_view take(std::string_view data, const std::function<void(std::string_view)>& send);
  // The agent runs: all further output is its own.
  bool is_running() const { return state_ == State::running; }
  bool is_installing() const { return state_ == State::installing; }
  // The end of the output before that.
  const std::string& printed() const { return printed_; }
  // Whether the server echoes the request, because it gave the command a terminal.
  bool has_echo() const;

 private:
  enum class State { asked, installing, running };
  void take_line(std::string_view line, const std::function<void(std::string_view)>& send);

  State state_ = State::asked;
  std::string request_;
  AgentFolders folders_;
  std::string printed_;
  std::string line_;
  std::size_t received_ = 0;
};

// The agent cannot work over a terminal.
Error terminal_in_between();

// A channel with the agent, which is installed first if the server does not have it. `sink` gets the
// output of the agent, and stderr.
std::unique_ptr<Flow> open_agent(Pump& pump, Sink sink, const std::shared_ptr<AgentStart>& start);

}  // namespace remote::ssh
