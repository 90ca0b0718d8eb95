#include "servers/agent.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <remote/error.hpp>

#include "base/log.hpp"
#include "base/login_shell.hpp"
#include "base/strings.hpp"
#include "wire/cbor.hpp"
#include "wire/json_text.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_received = std::size_t{64} << 20U;

Error explain(const wire::Malformed& problem) {
  return Error("the server's answer is not understood", problem.what()).mended_by(Remedy::tell_more);
}

std::string_view as_text(const wire::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The values of variables may be secrets.
void hide_values(std::vector<wire::Variable>& variables) {
  for (wire::Variable& variable : variables) {
    variable.value = "***";
  }
}

wire::Request hide_values(wire::Request request) {
  if (auto* facts = std::get_if<wire::FactsRequest>(&request)) {
    hide_values(facts->variables);
  } else if (auto* prepared = std::get_if<wire::PreparedRequest>(&request)) {
    hide_values(prepared->python.variables);
  }
  return request;
}

template <typename Message>
void log_message(std::string_view server, const char* direction, const Message& message) {
  if (logs(LogLevel::debug)) {
    log_debug(server, "{} {}", direction, wire::to_json_text(message));
  }
}

}  // namespace

void Agent::send(const wire::Bytes& frames) {
  if (flow_ && !start_->is_running()) {
    held_ += as_text(frames);
  } else if (flow_) {
    flow_->send(as_text(frames));
  } else {
    start_ = std::make_shared<ssh::AgentStart>(as_text(frames), pump_.connection().agent_folders());
    flow_ = ssh::open_agent(
        pump_,
        [this](ssh::Stream stream, std::string_view data) {
          if (stream == ssh::Stream::out) {
            take(data);
          } else {
            append_end(errors_, data);
          }
        },
        start_);
    has_request_ = start_->is_running();  // a parked channel has no login shell any more
  }
}

void Agent::take(std::string_view bytes) {
  if (!held_.empty()) {
    flow_->send(std::exchange(held_, {}));
  }
  try {
    reader_.add(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    if (is_taking_) {
      return;  // called by a handler that sends a frame
    }
    is_taking_ = true;
    while (const std::optional<wire::Frame> frame = reader_.next()) {
      take(*frame);
    }
    is_taking_ = false;
  } catch (const wire::Malformed& problem) {
    throw explain(problem);
  }
}

void Agent::take(const wire::Frame& frame) {
  const auto found = streams_.find(frame.stream);
  if (frame.stream == 0 && frame.kind == wire::FrameKind::message) {
    wire::decode<wire::AgentHello>(frame.payload);
    return;
  }
  has_request_ = true;  // the agent sends nothing but its hello before that
  if (frame.stream == 0 && frame.kind == wire::FrameKind::data && frame.payload.empty()) {
    return;  // a sign of life
  } else if (found == streams_.end()) {
    throw wire::Malformed("stream", "is not that of a question");
  } else if (frame.kind == wire::FrameKind::end) {
    const OpenStream ended = std::move(found->second);
    streams_.erase(found);
    if (ended.keeps_input && pump_.connection().parks()) {  // the next request reuses the stream's number
      wire::Bytes frames;
      wire::append_frame(frames, wire::FrameKind::end, frame.stream, {});
      send(frames);
    }
    if (ended.handlers.end && !ended.is_aborted) {
      ended.handlers.end();
    }
  } else if (!found->second.is_aborted) {
    take(frame, found->second);
  }
}

void Agent::take(const wire::Frame& frame, OpenStream& stream) {
  if (frame.kind == wire::FrameKind::message) {
    stream.received += frame.payload.size();
    if (stream.received > most_received) {
      throw Error("too much output", fmt::format("the server sent more than {} MB", most_received >> 20U))
          .mended_by(Remedy::tell_more);
    }
    wire::Reply reply = wire::decode<wire::Reply>(frame.payload);
    log_message(pump_.connection().server(), "answers", reply);
    stream.handlers.message(std::move(reply));
  } else if (frame.kind == wire::FrameKind::data && stream.handlers.data) {
    take_data(frame, stream);
  } else if (frame.kind == wire::FrameKind::credit) {
    stream.send_credit.grant(wire::read_credit(frame));
    wire::Bytes frames;
    append_data(frames, frame.stream, stream);
    send(frames);
  } else {
    throw wire::Malformed("kind", "is not expected");
  }
}

void Agent::take_data(const wire::Frame& frame, OpenStream& stream) {
  stream.receive_credit.receive(frame.payload.size());
  stream.handlers.data(as_text(frame.payload));
  const std::uint32_t credit = stream.receive_credit.consume(frame.payload.size());
  if (credit > 0 && !stream.is_aborted) {
    wire::Bytes frames;
    wire::append_credit(frames, frame.stream, credit);
    send(frames);
  }
}

// Appends as much of the question's data as the credit allows.
void Agent::append_data(wire::Bytes& frames, StreamId id, OpenStream& stream) {
  if (stream.has_ended_input || stream.keeps_input) {
    return;
  }
  while (!stream.unsent.empty() && stream.send_credit.available() > 0) {
    const std::size_t size =
        std::min({stream.unsent.size(), stream.send_credit.available(), wire::max_payload});
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(stream.unsent.data());
    wire::append_frame(frames, wire::FrameKind::data, id, std::span(bytes, size));
    stream.send_credit.consume(size);
    stream.unsent.remove_prefix(size);
  }
  if (stream.unsent.empty()) {
    stream.has_ended_input = true;
    wire::append_frame(frames, wire::FrameKind::end, id, {});
    if (stream.is_last) {
      wire::append_frame(frames, wire::FrameKind::end, 0, {});
    }
  }
}

Agent::StreamId Agent::open(const wire::Request& request, Handlers handlers) {
  return open(request, OpenStream{.handlers = std::move(handlers)});
}

Agent::StreamId Agent::open(const wire::Request& request, OpenStream stream) {
  if (std::holds_alternative<wire::RunRequest>(request)) {
    log_debug(pump_.connection().server(), "asks to run a process");  // the command may contain secrets
  } else if (logs(LogLevel::debug)) {
    log_message(pump_.connection().server(), "asks", hide_values(request));
  }
  asked_ = ssh::Flow::Clock::now();
  const StreamId id = ++last_;
  wire::Bytes frames;
  wire::append_frame(frames, wire::FrameKind::message, id, wire::encode(request));
  append_data(frames, id, stream);
  if (stream.keeps_input && std::exchange(stream.is_last, false)) {
    wire::append_frame(frames, wire::FrameKind::end, 0, {});
  }
  streams_.emplace(id, std::move(stream));
  send(frames);
  return id;
}

Agent::StreamId Agent::open_run(const wire::RunRequest& request, Handlers handlers) {
  OpenStream stream{.handlers = std::move(handlers), .keeps_input = request.has_input};
  stream.is_last = !pump_.connection().parks();
  return open(request, std::move(stream));
}

std::size_t Agent::input_credit(StreamId stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() || !found->second.keeps_input ? 0 : found->second.send_credit.available();
}

void Agent::send_input(StreamId stream, std::string_view data) {
  if (data.empty() || input_credit(stream) < data.size()) {
    return;  // its process has ended
  }
  streams_.at(stream).send_credit.consume(data.size());
  wire::Bytes frames;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  wire::append_frame(frames, wire::FrameKind::data, stream, std::span(bytes, data.size()));
  send(frames);
}

void Agent::end_input(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || !found->second.keeps_input) {
    return;
  }
  found->second.keeps_input = false;
  wire::Bytes frames;
  append_data(frames, stream, found->second);
  send(frames);
}

void Agent::send_size(StreamId stream, const TerminalSize& size) {
  if (input_credit(stream) > 0) {
    wire::Bytes frames;
    wire::append_frame(frames, wire::FrameKind::message, stream, wire::encode(wire::ResizeTerminal{size}));
    send(frames);
  }
}

void Agent::finish_run() {
  if (pump_.connection().parks()) {
    park();
  } else {
    wait_until([this] { return flow_->over(); }, {});
  }
}

void Agent::close(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end() && !found->second.is_aborted) {
    found->second.is_aborted = true;
    wire::Bytes frames;
    wire::append_frame(frames, wire::FrameKind::abort, stream, {});
    send(frames);
  }
}

void Agent::wait(std::chrono::milliseconds limit, std::chrono::milliseconds silence, std::span<pollfd> also) {
  if (!flow_) {
    pump_.wait(limit, also);
    return;
  }
  if (is_taking_) {
    throw Error("no answer", "an earlier reply of the server was not understood")
        .mended_by(Remedy::tell_more);
  }
  if (!streams_.empty() && flow_->over()) {
    throw explain_end();
  }
  if (start_->is_installing()) {
    asked_ =
        ssh::Flow::Clock::now();  // the connection determines how long that takes, and Pump::wait() limits it
  }
  const auto heard = std::max(asked_, flow_->heard());
  if (!start_->is_running() && silence.count() > 0 && heard + silence <= ssh::Flow::Clock::now()) {
    if (const std::string printed = start_->printed() + errors_; !printed.empty()) {
      throw login_shell_waits(printed, silence);
    }
  }
  limit = std::min(limit, time_for_request(heard));
  pump_.wait(std::min(limit, ssh::time_left(pump_.connection(), heard, silence, "the server sent nothing for",
                                            "it may be busy, or the network may be down; try again")),
             also);
}

// How long an agent that runs may still take to receive the first request. Throws Error if that time is over.
// The agent reports within two seconds that it has a request, unless a start file has read it.
std::chrono::milliseconds Agent::time_for_request(ssh::Flow::Clock::time_point heard) const {
  if (!start_->is_running() || has_request_) {
    return std::chrono::milliseconds::max();
  }
  ssh::Connection& connection = pump_.connection();
  const std::chrono::milliseconds for_slow_link(flow_->sent() / 8);  // 8 kB/s
  const std::chrono::milliseconds time = connection.answer_time() + for_slow_link;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(heard + time - ssh::Flow::Clock::now());
  if (left.count() > 0) {
    return left;
  }
  if (connection.explain_silence().empty()) {
    throw login_shell_took_input(start_->printed() + errors_, time);
  }
  return ssh::time_left(connection, heard, time, "the server sent nothing for", "");  // throws
}

void Agent::wait_until(const std::function<bool()>& done, std::chrono::milliseconds limit,
                       std::chrono::milliseconds silence, int wake) {
  auto begin = ssh::Flow::Clock::now();
  while (!done()) {
    if (start_ && start_->is_installing()) {
      begin = ssh::Flow::Clock::now();
    }
    std::array<pollfd, 1> also{{{wake, POLLIN, 0}}};
    wait(std::min(std::chrono::milliseconds(60000),
                  ssh::time_left(pump_.connection(), begin, limit, "the server did not finish within",
                                 "it may be busy; try again")),
         silence, also);
  }
}

// Why the agent ended without an answer.
Error Agent::explain_end() const {
  const ExitStatus status = flow_->ended();
  const std::string ended = ExecResult{status, {}, errors_}.describe();
  if (start_->is_running()) {
    return Error("no answer", "the agent on the server has ended: " + ended,
                 "try again; if it happens each time, a start file of the shell there may read the input "
                 "(read -p); -vv "
                 "logs the requests");
  }
  if (start_->is_installing()) {
    return Error("cannot start the agent", "its installation has ended: " + ended,
                 "check the disk of the home directory there");
  }
  if (start_->has_echo()) {
    return ssh::terminal_in_between();
  }
  return login_shell_ended(status.success() ? "" : ended, start_->printed());
}

void Agent::ask(const AgentQuestion& question, const TakeReply& take, bool is_last) {
  const ssh::Watchful watch_link(pump_.connection(), question.watchful);
  const Stopwatch watch;
  const std::string_view server = pump_.connection().server();
  log_info(server, "{}: begins, {} bytes of data", question.what, question.data.size());
  bool is_answered = false;
  std::size_t messages = 0;
  std::exception_ptr failure;
  OpenStream stream;
  stream.handlers.message = [&](wire::Reply reply) {
    ++messages;
    try {
      if (!failure) {
        take(std::move(reply));
      }
    } catch (const std::exception&) {
      failure = std::current_exception();  // the agent remains usable
    }
  };
  stream.handlers.end = [&] { is_answered = true; };
  stream.unsent = question.data;
  stream.is_last = is_last;
  const StreamId id = open(question.request, std::move(stream));
  try {
    wait_until([&] { return is_answered && (!is_last || flow_->over()); }, question.timeout,
               question.silence);
  } catch (...) {
    if (const auto found = streams_.find(id); found != streams_.end()) {
      found->second.is_aborted = true;  // its handlers no longer exist
    }
    throw;
  }
  log_info(server, "{}: answered after {}, {} messages", question.what, watch.text(), messages);
  if (failure) {
    std::rethrow_exception(failure);
  }
}

wire::Reply Agent::ask_once(const AgentQuestion& question, bool is_last) {
  std::vector<wire::Reply> replies;
  ask(
      question, [&](wire::Reply reply) { replies.push_back(std::move(reply)); }, is_last);
  if (replies.size() != 1) {
    throw explain(wire::Malformed("messages", "are not exactly one"));
  }
  return std::move(replies.front());
}

wire::Reply Agent::ask(const AgentQuestion& question) {
  return ask_once(question, false);
}

wire::Reply Agent::ask_last(const AgentQuestion& question) {
  return ask_once(question, true);
}

void Agent::park() {
  if (flow_ && start_->is_running() && streams_.empty() && held_.empty() && !is_taking_ &&
      !reader_.is_inside_frame() && flow_->has_sent_all()) {
    flow_->channel().park();
  }
  flow_.reset();
}

wire::Reply ask_agent(ssh::Connection& connection, const AgentQuestion& question, const Cancel& cancel) {
  Agent agent(connection, cancel);
  if (!connection.parks()) {
    return agent.ask_last(question);
  }
  wire::Reply reply = agent.ask(question);
  agent.park();
  return reply;
}

void ask_agent(ssh::Connection& connection, const AgentQuestion& question, const Agent::TakeReply& take,
               const Cancel& cancel) {
  Agent agent(connection, cancel);
  if (!connection.parks()) {
    agent.ask_last(question, take);
    return;
  }
  agent.ask(question, take);
  agent.park();
}

template <typename Wanted>
Wanted take_reply(wire::Reply reply) {
  if (const auto* refusal = std::get_if<wire::Refusal>(&reply)) {
    throw Refused(refusal->reason);
  }
  if (auto* wanted = std::get_if<Wanted>(&reply)) {
    return std::move(*wanted);
  }
  throw explain(wire::Malformed("message", "does not fit the question"));
}

template wire::FactsReply take_reply(wire::Reply reply);
template wire::StateReply take_reply(wire::Reply reply);
template wire::UninstallReply take_reply(wire::Reply reply);
template wire::WorkersReply take_reply(wire::Reply reply);
template wire::LinesReply take_reply(wire::Reply reply);
template wire::StopReply take_reply(wire::Reply reply);
template wire::CleanReply take_reply(wire::Reply reply);
template wire::KeepProgramReply take_reply(wire::Reply reply);
template wire::StartJobsReply take_reply(wire::Reply reply);
template wire::MakeTreeReply take_reply(wire::Reply reply);
template wire::LeasesReply take_reply(wire::Reply reply);
template wire::BeginSweepReply take_reply(wire::Reply reply);
template wire::SweepReply take_reply(wire::Reply reply);
template wire::StacksReply take_reply(wire::Reply reply);
template wire::WhyReply take_reply(wire::Reply reply);
template wire::KeptWhyReply take_reply(wire::Reply reply);
template wire::ListenReply take_reply(wire::Reply reply);
template wire::ReachReply take_reply(wire::Reply reply);
template wire::SendReply take_reply(wire::Reply reply);
template wire::ContainerReply take_reply(wire::Reply reply);
template wire::SlurmProgramsReply take_reply(wire::Reply reply);
template wire::ListenersReply take_reply(wire::Reply reply);
template wire::WebPortReply take_reply(wire::Reply reply);
template wire::ClearSickMarkReply take_reply(wire::Reply reply);
template wire::PathsReply take_reply(wire::Reply reply);
template wire::MatchesReply take_reply(wire::Reply reply);
template wire::WrittenReply take_reply(wire::Reply reply);
template wire::InitFileReply take_reply(wire::Reply reply);
template wire::PullProjectReply take_reply(wire::Reply reply);
template wire::CompareFilesReply take_reply(wire::Reply reply);
template wire::PreparedReply take_reply(wire::Reply reply);
template wire::RecordSourceReply take_reply(wire::Reply reply);
template wire::RemovePartialsReply take_reply(wire::Reply reply);
template wire::ProvisionReply take_reply(wire::Reply reply);
template wire::AuthorizeReply take_reply(wire::Reply reply);
template wire::TryNotifyReply take_reply(wire::Reply reply);
template wire::RunBegins take_reply(wire::Reply reply);

}  // namespace remote::servers
