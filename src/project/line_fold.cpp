#include "project/line_fold.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace remote::project {
namespace {

// Limit for waiting lines, in bytes. If one rank is so far ahead of the others, its oldest lines are passed
// on alone.
constexpr std::size_t most_waiting = std::size_t{16} << 20U;
// Number of another rank's lines to search for the same line.
constexpr std::size_t look_ahead = 32;
// Lines of further kinds are not learned, so they always wait.
constexpr std::size_t most_kinds = 10000;

std::size_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::size_t kind_of(OutputStream stream, std::string_view text) {
  std::string kind(1, stream == OutputStream::out ? 'o' : 'e');
  for (const char c : text) {
    const bool of_number = (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!of_number) {
      kind += c;
    }
  }
  return hash_of(kind);
}

}  // namespace

void LineFold::close(int rank) {
  if (--open_[rank] <= 0) {
    open_.erase(rank);
  }
  give_ready();
}

void LineFold::take(int rank, OutputStream stream, std::string line, Clock::time_point now) {
  std::deque<Waiting>& queue = queues_[rank];
  bytes_ += line.size() + sizeof(Waiting);
  const std::size_t kind = kind_of(stream, line);
  queue.push_back({{stream, std::move(line)}, now, kind});
  if (queue.size() == 1) {
    give_ready();
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

bool LineFold::may_have_its_like(const Waiting& waiting) const {
  const auto known = kinds_.find(waiting.kind);
  return known == kinds_.end() || known->second.shared;
}

// The next line that need not wait: all ranks have reached it, or no other rank is expected to write it.
std::optional<LineFold::Line> LineFold::next_ready() const {
  const auto lonely =
      std::ranges::find_if(queues_, [&](const auto& one) { return !may_have_its_like(one.second.front()); });
  if (lonely != queues_.end()) {
    return lonely->second.front().line;
  }
  const auto has_come = [&](const auto& one) { return queues_.contains(one.first); };
  if (queues_.empty() || !std::ranges::all_of(open_, has_come)) {
    return std::nullopt;
  }
  const Line& line = queues_.begin()->second.front().line;
  const auto is_next = [&](const auto& one) { return one.second.front().line == line; };
  return std::ranges::all_of(queues_, is_next) ? std::optional(line) : std::nullopt;
}

void LineFold::give_ready() {
  while (const auto line = next_ready()) {
    give_next(*line);
  }
}

// Passes on the rank's next line, together with those of other ranks that have the same line near the front.
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
  give_ready();
}

// Passes on the lines before this one in a rank's queue.
void LineFold::bring_forward(const Line& line, int rank) {
  for (;;) {
    const Line before = queues_.at(rank).front().line;
    if (before == line) {
      return;
    }
    give_next(before);
  }
}

void LineFold::learn(std::size_t kind, std::size_t text, std::span<const int> ranks) {
  auto known = kinds_.find(kind);
  if (known == kinds_.end()) {
    if (kinds_.size() == most_kinds) {
      return;
    }
    known = kinds_.try_emplace(kind).first;
  }
  Kind& now = known->second;
  now.shared = now.shared || ranks.size() > 1 || (now.text == text && now.rank != ranks.front());
  now.text = text;
  now.rank = ranks.front();
}

// Passes on a line for all ranks that have it next.
void LineFold::give_next(const Line& line) {
  std::vector<int> ranks;
  std::size_t kind = 0;
  for (auto at = queues_.begin(); at != queues_.end();) {
    std::deque<Waiting>& queue = at->second;
    if (queue.front().line != line) {
      ++at;
      continue;
    }
    ranks.push_back(at->first);
    kind = queue.front().kind;
    bytes_ -= queue.front().line.text.size() + sizeof(Waiting);
    queue.pop_front();
    at = queue.empty() ? queues_.erase(at) : std::next(at);
  }
  learn(kind, hash_of(line.text), ranks);
  give_(ranks, line.stream, line.text);
}

}  // namespace remote::project
