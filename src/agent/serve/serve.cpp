#include "agent/serve/serve.hpp"

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "agent/serve/follower.hpp"
#include "agent/serve/foreground.hpp"
#include "agent/serve/output.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_streams = 64;

// A request whose data has not arrived completely.
struct Incoming {
  wire::Request request;
  std::string data{};
  wire::ReceiveCredit credit{};
};

// A request that is being answered, with its thread.
class Answering final : public Stream {
 public:
  Answering(std::uint32_t stream, Output& output, const std::atomic<bool>& is_gone)
      : stream_(stream), output_(output), is_gone_(is_gone) {}
  ~Answering() override {
    if (thread.joinable()) {
      thread.join();
    }
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  void send(const wire::Reply& reply) override {
    if (!is_closed()) {
      output_.send_message(stream_, reply);
    }
  }
  bool is_closed() const override { return is_aborted || is_gone_; }
  bool has_thread() const override { return !is_alone; }

  void answer(const Answer& answer, const wire::Request& request, const std::string& data) {
    try {
      answer(request, data, *this);
    } catch (const std::exception& error) {
      send(wire::Refusal{wire::to_line(error.what(), 1000)});
    }
    output_.send(wire::FrameKind::end, stream_);
  }
  std::uint32_t id() const override { return stream_; }

  std::atomic<bool> is_aborted = false;
  std::atomic<bool> is_done = false;
  bool is_alone = false;  // it has no thread
  std::thread thread;

 private:
  std::uint32_t stream_;
  Output& output_;
  const std::atomic<bool>& is_gone_;
};

class Service {
 public:
  // Writes a byte to `wake` whenever an answer has been sent.
  Service(int out, int wake, const Host& host, const Answer& answer)
      : output_(out), wake_(wake), host_(host), answer_(answer) {}

  // Waits for the threads.
  ~Service() {
    is_gone_ = true;
    if (host_.cancelled) {
      *host_.cancelled = true;
    }
    for (auto& [stream, run] : runs_) {
      run.abort();
    }
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Output& output() { return output_; }
  // Whether the client has no more requests, and all are answered.
  bool is_done() const { return is_last_ && incoming_.empty() && unanswered_ == 0; }

  bool is_answering() const { return unanswered_ > 0; }
  // A finished thread keeps its stack until it is joined.
  void join_finished() {
    std::erase_if(answering_, [](const Answering& answer) { return answer.is_done.load(); });
    std::erase_if(runs_, [](const auto& run) { return is_over(run.second); });
  }
  // The loops without a thread.
  std::vector<Loop*> loops() {
    std::vector<Loop*> result;
    for (auto& [folder, follower] : followers_) {
      const std::vector<Loop*> loops = follower.loops();
      result.insert(result.end(), loops.begin(), loops.end());
    }
    for (auto& [stream, run] : runs_) {
      if (!run.has_thread()) {
        result.push_back(&run);
      }
    }
    return result;
  }

  // Throws Malformed.
  void take(const wire::Frame& frame) {
    const auto found = incoming_.find(frame.stream);
    auto run = runs_.find(frame.stream);
    if (run != runs_.end() && is_over(run->second)) {
      runs_.erase(run);  // the client may reuse the number
      run = runs_.end();
    }
    if (run != runs_.end()) {
      take_for_run(frame, run->second);
    } else if (frame.kind == wire::FrameKind::end && frame.stream == 0) {
      is_last_ = true;
    } else if (frame.kind == wire::FrameKind::message && found == incoming_.end() && frame.stream != 0) {
      begin(frame.stream, wire::decode<wire::Request>(frame.payload));
    } else if (frame.kind == wire::FrameKind::data && found != incoming_.end()) {
      add_data(frame.stream, found->second, frame.payload);
    } else if (frame.kind == wire::FrameKind::end && found != incoming_.end()) {
      const Incoming incoming = std::move(found->second);
      incoming_.erase(found);
      begin_answer(frame.stream, incoming);
    } else if (frame.kind == wire::FrameKind::abort) {
      abort(frame.stream);
    } else if (frame.kind == wire::FrameKind::credit) {
      grant(frame.stream, wire::read_credit(frame));
    } else {
      throw wire::Malformed("kind", "does not fit the stream");
    }
  }

 private:
  void begin(std::uint32_t stream, wire::Request request) {
    if (incoming_.size() + runs_.size() >= most_streams) {
      throw wire::Malformed("stream", "is one too many");
    }
    if (auto* run = std::get_if<wire::RunRequest>(&request)) {
      ++unanswered_;
      const auto [begun, is_new] =
          runs_.try_emplace(stream, host_, stream, std::move(*run), output_, [this] { note_answer(); });
      static_cast<void>(begun->second.start_thread());
    } else {
      incoming_.emplace(stream, Incoming{std::move(request)});
    }
  }
  static bool is_over(const Foreground& run) { return run.is_finished() && run.has_ended_input(); }
  static void take_for_run(const wire::Frame& frame, Foreground& run) {
    if (frame.kind == wire::FrameKind::data) {
      run.add_input(frame.payload);
    } else if (frame.kind == wire::FrameKind::message) {
      run.resize(wire::decode<wire::ResizeTerminal>(frame.payload).size);
    } else if (frame.kind == wire::FrameKind::end) {
      run.end_input();
    } else if (frame.kind == wire::FrameKind::credit) {
      run.grant(wire::read_credit(frame));
    } else {
      run.abort();
    }
  }

  void add_data(std::uint32_t stream, Incoming& incoming, const wire::Bytes& payload) {
    incoming.credit.receive(payload.size());
    if (incoming.data.size() + payload.size() > wire::max_request_data) {
      throw wire::Malformed("data", "is too long");
    }
    incoming.data.append(payload.begin(), payload.end());
    if (const std::uint32_t credit = incoming.credit.consume(payload.size()); credit > 0) {
      wire::Bytes frames;
      wire::append_credit(frames, stream, credit);
      output_.send(frames);
    }
  }

  // These two can arrive after the stream has ended.
  void abort(std::uint32_t stream) {
    if (incoming_.erase(stream) > 0) {
      output_.send(wire::FrameKind::end, stream);
    }
    for (Answering& answer : answering_) {
      answer.is_aborted = answer.is_aborted || answer.id() == stream;
    }
    for (auto& [folder, follower] : followers_) {
      follower.abort(stream);
    }
  }
  void grant(std::uint32_t stream, std::uint32_t bytes) {
    for (auto& [folder, follower] : followers_) {
      follower.grant(stream, bytes);
    }
  }

  void begin_answer(std::uint32_t stream, const Incoming& incoming) {
    ++unanswered_;
    if (const auto* follow = std::get_if<wire::FollowRequest>(&incoming.request)) {
      find_follower(follow->place).add(stream, *follow);
      return;
    }
    Answering& answering = answering_.emplace_back(stream, output_, is_gone_);
    const auto work = [this, &answering, incoming] {
      answering.answer(answer_, incoming.request, incoming.data);
      answering.is_done = true;
      note_answer();
    };
    try {
      answering.thread = std::thread(work);
    } catch (const std::system_error&) {
      answering.is_alone = true;
      output_.send(wire::FrameKind::data, 0);  // the client must know now that the request has arrived
      work();                                  // the user's process limit is reached
    }
  }
  void note_answer() {
    --unanswered_;
    [[maybe_unused]] const ssize_t written = ::write(wake_, "", 1);
  }

  // There is one follower per folder, so that a hanging disk does not block other jobs.
  Follower& find_follower(const wire::JobsPlace& place) {
    const std::pair key(place.project, place.jobs_folder);
    return followers_.try_emplace(key, host_, place, output_, [this] { note_answer(); }).first->second;
  }

  Output output_;
  int wake_;
  const Host& host_;
  const Answer& answer_;
  bool is_last_ = false;
  std::atomic<bool> is_gone_ = false;
  std::atomic<int> unanswered_ = 0;
  std::map<std::uint32_t, Incoming> incoming_;
  std::list<Answering> answering_;
  std::map<std::pair<std::string, std::string>, Follower> followers_;
  std::map<std::uint32_t, Foreground> runs_;  // until both sides have ended the stream
};

// Sends a keepalive when nothing has happened for the interval.
class SignsOfLife {
 public:
  explicit SignsOfLife(std::chrono::milliseconds interval) : interval_(interval) {}

  int time_left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last_ + interval_ - Clock::now());
    return static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
  }
  void send_if_due(Output& output) {
    if (Clock::now() >= last_ + interval_) {
      output.send(wire::FrameKind::data, 0);
      reset();
    }
  }
  void reset() { last_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds interval_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

int serve(int in, int out, const std::string& program, const Host& host, const Answer& answer,
          std::chrono::milliseconds interval) {
  std::array<int, 2> wake{-1, -1};
  if (::pipe2(wake.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return 1;
  }
  int status = 0;
  {
    Service service(out, wake[1], host, answer);
    service.output().send_message(0, wire::AgentHello{program});
    wire::FrameReader reader;
    SignsOfLife signs(interval);
    std::array<std::uint8_t, 65536> buffer{};
    while (!service.is_done()) {
      std::vector<pollfd> ready{{in, POLLIN, 0}, {wake[0], POLLIN, 0}};
      const std::vector<Loop*> loops = service.loops();
      int limit = -1;
      if (service.is_answering()) {
        limit = signs.time_left();
      } else {
        signs.reset();
      }
      for (Loop* loop : loops) {
        const int other = loop->prepare(ready);
        limit = limit < 0 ? other : other < 0 ? limit : std::min(limit, other);
      }
      if (::poll(ready.data(), ready.size(), limit) < 0) {
        continue;
      }
      if (service.is_answering()) {
        signs.send_if_due(service.output());
      }
      for (Loop* loop : loops) {
        loop->step();
      }
      if (ready[1].revents != 0) {
        [[maybe_unused]] const ssize_t waste = ::read(wake[0], buffer.data(), buffer.size());
        service.join_finished();
      }
      if (ready[0].revents == 0) {
        continue;
      }
      const ssize_t count = ::read(in, buffer.data(), buffer.size());
      if (count <= 0) {
        break;
      }
      try {
        reader.add(std::span(buffer).first(static_cast<std::size_t>(count)));
        while (const std::optional<wire::Frame> frame = reader.next()) {
          service.take(*frame);
        }
      } catch (const wire::Malformed&) {
        status = 1;
        break;
      }
    }
  }
  ::close(wake[0]);
  ::close(wake[1]);
  return status;
}

}  // namespace remote::agent
