#include "project/line_fold.hpp"

#include <algorithm>
#include <utility>

namespace remote::project {
namespace {

// Where one rank is far ahead of the others, its oldest lines are given alone.
constexpr std::size_t most_waiting = std::size_t{16} << 20U;
// How far ahead a line's like is looked for in another rank's lines.
constexpr std::size_t look_ahead = 32;

}  // namespace

void LineFold::close(int rank) {
  if (--open_[rank] <= 0) {
    open_.erase(rank);
  }
  give_common();
}

void LineFold::take(int rank, OutputStream stream, std::string line, Clock::time_point now) {
  std::deque<Waiting>& queue = queues_[rank];
  bytes_ += line.size() + sizeof(Waiting);
  queue.push_back({{stream, std::move(line)}, now});
  if (queue.size() == 1) {
    give_common();
  }
  while (bytes_ > most_waiting) {
    const auto longest =
        std::ranges::max_element(queues_, {}, [](const auto& one) { return one.second.size(); });
    give_oldest(longest->first);
  }
}

void LineFold::give_due(Clock::time_point now) {
  while (!queues_.empty()) {
    const auto oldest =
        std::ranges::min_element(queues_, {}, [](const auto& one) { return one.second.front().since; });
    if (oldest->second.front().since > now - longest_wait) {
      return;
    }
    give_oldest(oldest->first);
  }
}

// Gives the lines that all ranks have come to.
void LineFold::give_common() {
  while (!queues_.empty() &&
         std::ranges::all_of(open_, [&](const auto& one) { return queues_.contains(one.first); })) {
    const Line line = queues_.begin()->second.front().line;
    if (!std::ranges::all_of(queues_, [&](const auto& one) { return one.second.front().line == line; })) {
      return;
    }
    give_next(line);
  }
}

// Gives the rank's next line, to which the others come as well where it is near.
void LineFold::give_oldest(int rank) {
  const Line line = queues_.at(rank).front().line;
  std::vector<int> others;
  for (const auto& [other, queue] : queues_) {
    const auto end = queue.begin() + static_cast<std::ptrdiff_t>(std::min(queue.size(), look_ahead));
    if (std::any_of(queue.begin(), end, [&](const Waiting& one) { return one.line == line; })) {
      others.push_back(other);
    }
  }
  for (const int other : others) {
    bring_forward(line, other);
  }
  give_next(line);
  give_common();
}

// Gives what stands before this line in a rank's lines.
void LineFold::bring_forward(const Line& line, int rank) {
  for (;;) {
    const Line before = queues_.at(rank).front().line;
    if (before == line) {
      return;
    }
    give_next(before);
  }
}

// Gives a line for all ranks whose next line it is.
void LineFold::give_next(const Line& line) {
  std::vector<int> ranks;
  for (auto at = queues_.begin(); at != queues_.end();) {
    std::deque<Waiting>& queue = at->second;
    if (queue.front().line != line) {
      ++at;
      continue;
    }
    ranks.push_back(at->first);
    bytes_ -= queue.front().line.text.size() + sizeof(Waiting);
    queue.pop_front();
    at = queue.empty() ? queues_.erase(at) : std::next(at);
  }
  give_(ranks, line.stream, line.text);
}

}  // namespace remote::project
