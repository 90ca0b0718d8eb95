#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <remote/error.hpp>

#include "ssh/pump.hpp"

namespace remote::ssh {

// Starts the agent on a channel. Not thread-safe.
class AgentStart {
 public:
  // `request` contains the first bytes for the agent. They are sent immediately, so if the agent is
  // installed, its answer takes one round trip.
  AgentStart(std::string_view request, AgentFolders folders);

  // The first input for the channel's stdin.
  const std::string& request() const { return request_; }
  // Call this if the channel was parked. The agent is already running, so only the request is sent.
  void resume();
  // Processes the next piece of the channel's output, and returns the part that the agent itself wrote.
  // Throws Error if the server cannot run the agent. `send` receives the data that installs it.
  std::string_view take(std::string_view data, const std::function<void(std::string_view)>& send);
  // Whether the agent is running. From then on, all output is its own.
  bool is_running() const { return state_ == State::running; }
  bool is_installing() const { return state_ == State::installing; }
  // The last output of the login shell, before the agent.
  const std::string& printed() const { return printed_; }
  // Whether the server echoes the request, because it has given the command a terminal.
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

// The error if there is a terminal in between, over which the agent cannot work.
Error terminal_in_between();

// Opens a channel with the agent, and installs the agent first if the server does not have it. `sink` gets
// the agent's output and stderr.
std::unique_ptr<Flow> open_agent(Pump& pump, Sink sink, const std::shared_ptr<AgentStart>& start);

}  // namespace remote::ssh
