#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <poll.h>
#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "ssh/agent_channel.hpp"
#include "ssh/pump.hpp"
#include "wire/frame.hpp"
#include "wire/request.hpp"

// The client's side of an agent.

namespace remote::servers {

struct AgentQuestion {
  std::string what = "question";  // for the log: "facts"
  wire::Request request{};
  std::string data{};                    // follows the request; at most wire::max_request_data bytes
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds silence{0};  // longest time without a byte; 0: unlimited
  // The answer is immediate, and other servers are waiting for it: see Connection::be_watchful.
  bool watchful = false;
};

// An agent on a server. It answers any number of questions on one channel. It ends with this object, which
// must not outlive the connection. Not thread-safe.
class Agent {
 public:
  using StreamId = std::uint32_t;
  using TakeReply = std::function<void(wire::Reply)>;

  // Handlers of a stream, called within wait() and ask(). They may open and close streams, but must not call
  // ask() or wait(). Do not use the Agent after one of them throws.
  struct Handlers {
    TakeReply message;
    // Called with each frame of data. The server sends more only after it returns. If it is empty, receiving
    // data is an error.
    std::function<void(std::string_view)> data{};
    std::function<void()> end{};  // the answer is complete
  };

  Agent(ssh::Connection& connection, const Cancel& cancel) : pump_(connection, cancel) {}

  // These throw Interrupted and Error, including for a malformed answer or if the server cannot run the
  // agent. Do not use the object after an error.

  // Returns the only message of the answer.
  wire::Reply ask(const AgentQuestion& question);
  // Calls `take` for each message as it arrives. Exceptions of `take` are rethrown after the answer is
  // complete, and the object remains usable.
  void ask(const AgentQuestion& question, const TakeReply& take) { ask(question, take, false); }
  // Like ask(), but ends the agent afterwards, to free its channel for another command.
  wire::Reply ask_last(const AgentQuestion& question);
  void ask_last(const AgentQuestion& question, const TakeReply& take) { ask(question, take, true); }

  // Sends a request without waiting for the answer: see wait().
  StreamId open(const wire::Request& request, Handlers handlers);
  // Sends a RunRequest. If it has input, the next three send that: at most input_credit() bytes at a time,
  // which is 0 after the end.
  StreamId open_run(const wire::RunRequest& request, Handlers handlers);
  std::size_t input_credit(StreamId stream) const;
  void send_input(StreamId stream, std::string_view data);
  void end_input(StreamId stream);
  void send_size(StreamId stream, const TerminalSize& size);
  // Call it after the end of the answer. It parks or ends the agent, and the object must not be used any
  // more.
  void finish_run();
  // Drops the stream's remaining messages and aborts the answer.
  void close(StreamId stream);
  // Waits for a message, or for one of these descriptors, at most for `limit`. Throws Error if the agent has
  // ended while streams are open, if it gets no request, or if nothing arrived for `silence` (0: no limit).
  void wait(std::chrono::milliseconds limit, std::chrono::milliseconds silence = {},
            std::span<pollfd> also = {});
  // Waits until done() returns true. Also throws Error after `limit` (0: none), not counting an installation.
  void wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit,
                  std::chrono::milliseconds silence = {}, int wake = -1);
  bool has_streams() const { return !streams_.empty(); }

  ssh::Connection& connection() const { return pump_.connection(); }
  // False while the agent is being installed.
  bool is_running() const { return start_ && start_->is_running(); }
  // Whether the login shell has not started the agent, or the agent has received no request. False while the
  // agent is being installed.
  bool awaits_login_shell() const { return start_ && !start_->is_installing() && !has_request_; }
  bool has_ended() { return flow_ && flow_->over(); }
  // Leaves the agent running for the next question on this connection, if it has answered everything
  // (Channel::park). The object must not be used any more.
  void park();

 private:
  struct OpenStream {
    Handlers handlers{};
    std::string_view unsent{};  // of the question's data
    bool keeps_input = false;   // until end_input()
    bool has_ended_input = false;
    bool is_last = false;
    bool is_aborted = false;
    std::size_t received = 0;  // bytes of messages
    wire::SendCredit send_credit{};
    wire::ReceiveCredit receive_credit{};
  };

  void ask(const AgentQuestion& question, const TakeReply& take, bool is_last);
  wire::Reply ask_once(const AgentQuestion& question, bool is_last);
  StreamId open(const wire::Request& request, OpenStream stream);
  void send(const wire::Bytes& frames);
  void take(std::string_view bytes);
  void take(const wire::Frame& frame);
  void take(const wire::Frame& frame, OpenStream& stream);
  void take_data(const wire::Frame& frame, OpenStream& stream);
  void append_data(wire::Bytes& frames, StreamId id, OpenStream& stream);
  std::chrono::milliseconds time_for_request(ssh::Flow::Clock::time_point heard) const;
  Error explain_end() const;

  ssh::Pump pump_;
  std::shared_ptr<ssh::AgentStart> start_;
  std::string errors_;  // the end of stderr
  std::string held_;    // frames to send once it runs: a shell that installs it must not read them
  wire::FrameReader reader_;
  bool is_taking_ = false;    // stays true after an error
  bool has_request_ = false;  // the agent has received one
  StreamId last_ = 0;
  std::map<StreamId, OpenStream> streams_;  // with incomplete answers
  ssh::Flow::Clock::time_point asked_{};    // last question, or last check during an installation
  std::unique_ptr<ssh::Flow> flow_;         // declared last, because its sink is called until it is destroyed
};

// Asks a server's agent one question. The agent is kept for the next one if the connection can park it.
wire::Reply ask_agent(ssh::Connection& connection, const AgentQuestion& question, const Cancel& cancel);
void ask_agent(ssh::Connection& connection, const AgentQuestion& question, const Agent::TakeReply& take,
               const Cancel& cancel);

// The server refused the request: it has done nothing.
class Refused : public Error {
 public:
  explicit Refused(const std::string& reason)
      : Error(Error("the server refused", reason).mended_by(Remedy::check_server)) {}
};

// Converts the reply to this type. Throws Refused for a refusal, and Error for any other type.
template <typename Wanted>
Wanted take_reply(wire::Reply reply);

}  // namespace remote::servers
