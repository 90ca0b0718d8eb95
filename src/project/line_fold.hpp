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

// Folds equal lines. Ranks that do the same write the same lines, some a little later than others; this
// passes on each such line once. A line waits until all ranks that still write have reached it, or at most
// `longest_wait`. It does not wait if only single ranks have written lines like it so far, ignoring numbers.
// Keeps the order of lines within each rank. Not thread-safe.
class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest_wait{150};

  // `ranks` are sorted. `ranks` and `line` are only valid during the call.
  using Give = std::function<void(std::span<const int> ranks, OutputStream stream, std::string_view line)>;

  explicit LineFold(Give give) : give_(std::move(give)) {}

  // Announces another output of the rank; lines of other ranks then wait for it.
  void open(int rank) { ++open_[rank]; }
  // An output of the rank has ended.
  void close(int rank);
  void take(int rank, OutputStream stream, std::string line, Clock::time_point now);
  // Whether lines of this rank are waiting.
  bool holds(int rank) const { return queues_.contains(rank); }
  // Passes on the lines that have waited long enough.
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
  // A group of lines that differ only in their numbers, some of which were passed on.
  struct Kind {
    std::size_t text = 0;  // a hash of the last one
    int rank = -1;         // the rank that wrote it
    bool shared = false;   // several ranks have written the same line
  };

  bool may_have_its_like(const Waiting& waiting) const;
  std::optional<Line> next_ready() const;
  void give_ready();
  void give_oldest(int rank);
  void give_next(const Line& line);
  void bring_forward(const Line& line, int rank);
  void learn(std::size_t kind, std::size_t text, std::span<const int> ranks);

  Give give_;
  std::map<int, int> open_;                    // number of open outputs, by rank
  std::map<int, std::deque<Waiting>> queues_;  // waiting lines, by rank
  std::size_t bytes_ = 0;                      // size of the waiting lines
  std::map<std::size_t, Kind> kinds_;
};

}  // namespace remote::project
