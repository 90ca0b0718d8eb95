#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

namespace remote::project {

// Ranks that do the same write the same lines, each a little earlier or later than its neighbours. This gives
// such a line once. A line waits for its like from the others; it is given when all ranks that still write
// have come to it, or when it has waited for `longest_wait`. It does not wait where only single ranks have
// written such lines so far (apart from their numbers). The order of each rank's lines stays. One thread.
class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest_wait{150};

  // `ranks` in order. They and `line` last as long as the call.
  using Give = std::function<void(std::span<const int> ranks, OutputStream stream, std::string_view line)>;

  explicit LineFold(Give give) : give_(std::move(give)) {}

  // The rank will write, in one output more; lines of the others wait for it.
  void open(int rank) { ++open_[rank]; }
  // One output of the rank has come to its end.
  void close(int rank);
  void take(int rank, OutputStream stream, std::string line, Clock::time_point now);
  // Whether a line of this rank waits.
  bool holds(int rank) const { return queues_.contains(rank); }
  // Gives the lines that have waited long enough.
  void give_due(Clock::time_point now);
  void give_all() { give_due(Clock::time_point::max()); }

 private:
  struct Line {
    OutputStream stream;
    std::string text;
    bool operator==(const Line&) const = default;
  };
  struct Waiting {
    Line line;
    Clock::time_point since;
    std::size_t kind;  // a hash of the line without its numbers
  };
  // Lines of one kind, of which some were given.
  struct Kind {
    std::size_t text = 0;  // a hash of the last one
    int rank = -1;         // that wrote it
    bool shared = false;   // several ranks have written the same
  };

  bool may_have_its_like(const Waiting& waiting) const;
  std::optional<Line> next_ready() const;
  void give_ready();
  void give_oldest(int rank);
  void give_next(const Line& line);
  void bring_forward(const Line& line, int rank);
  void learn(std::size_t kind, std::size_t text, std::span<const int> ranks);

  Give give_;
  std::map<int, int> open_;                    // how many outputs of a rank are open
  std::map<int, std::deque<Waiting>> queues_;  // of each rank that has waiting lines
  std::size_t bytes_ = 0;                      // that wait
  std::map<std::size_t, Kind> kinds_;
};

}  // namespace remote::project
