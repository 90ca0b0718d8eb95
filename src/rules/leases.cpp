#include "rules/leases.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace remote::rules {
namespace {

constexpr std::string_view mark = "remote-lease1";
constexpr std::string_view state_mark = "state:";
constexpr std::array<std::string_view, 4> state_names = {"held", "line", "announced", "claimed"};
constexpr std::uint64_t max_arrival = std::uint64_t{1} << 62;
constexpr std::uint64_t max_cpus = 1'000'000;
constexpr std::uint64_t max_memory = std::uint64_t{1} << 60;
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t max_gpus = 128;
constexpr std::size_t max_key = 80;

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t blank = line.find(' ');
    words.push_back(line.substr(0, blank));
    if (blank == std::string_view::npos) {
      return words;
    }
    line.remove_prefix(blank + 1);
  }
}

std::optional<std::uint64_t> parse_number(std::string_view word, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number > most) {
    return std::nullopt;
  }
  return number;
}

bool is_gpu_key(std::string_view word) {
  return !word.empty() && word.size() <= max_key && std::ranges::all_of(word, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == ':' || c == '.' || c == '_';
  });
}

std::uint64_t subtract(std::uint64_t from, std::uint64_t value) {
  return from > value ? from - value : 0;
}

}  // namespace

std::optional<LeaseFile> parse_lease_file(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text.substr(0, text.find('\n')));
  if (words.size() < 5 || words[0] != mark || !words[4].starts_with(state_mark) ||
      words.size() - 5 > max_gpus) {
    return std::nullopt;
  }
  const auto arrival = parse_number(words[1], max_arrival);
  const auto cpus = parse_number(words[2], max_cpus);
  const auto memory = parse_number(words[3], max_memory);
  const auto state = std::ranges::find(state_names, words[4].substr(state_mark.size()));
  if (!arrival || !cpus || !memory || state == state_names.end()) {
    return std::nullopt;
  }
  LeaseFile file{static_cast<LeaseState>(state - state_names.begin()), *arrival, *cpus, *memory, {}};
  for (std::size_t i = 5; i < words.size(); ++i) {
    if (!is_gpu_key(words[i])) {
      return std::nullopt;
    }
    file.gpus.emplace_back(words[i]);
  }
  return file;
}

std::string format_lease_file(const LeaseFile& file) {
  std::string text(mark);
  for (const std::uint64_t number : {file.arrival, file.cpus, file.memory}) {
    text += " " + std::to_string(number);
  }
  text.append(" ").append(state_mark).append(state_names.at(static_cast<std::size_t>(file.state)));
  for (const std::string& gpu : file.gpus) {
    text += " " + gpu;
  }
  return text + "\n";
}

LeaseSurvey::LeaseSurvey(const LeaseMachine& machine, const std::vector<LeaseEntry>& others,
                         const LeaseNeeds& needs)
    : machine_(machine), needs_(needs), cpus_(machine.cpus), memory_(machine.memory) {
  const LeaseMachine::Limits& limits = machine.limits;
  std::uint64_t own_cpus = 0;
  std::uint64_t own_memory = 0;
  for (const LeaseEntry& entry : others) {
    const Place place{entry.file.arrival, entry.name};
    if (entry.file.state == LeaseState::waiting || entry.file.state == LeaseState::announced) {
      waiters_.emplace_back(entry.file.state, place);
      continue;
    }
    if (entry.file.state == LeaseState::claimed) {
      claims_.push_back(place);
    }
    owned_.insert(entry.file.gpus.begin(), entry.file.gpus.end());
    cpus_ = subtract(cpus_, entry.file.cpus);
    memory_ = subtract(memory_, entry.file.memory);
    if (entry.uid == limits.uid) {
      own_cpus += entry.file.cpus;
      own_memory += entry.file.memory;
    }
  }
  cpus_ = std::min(cpus_, subtract(limits.cpus.value_or(no_limit), own_cpus));
  memory_ = std::min(memory_, subtract(limits.memory.value_or(no_limit), own_memory));
  memory_ = std::min(memory_, machine.available);
  for (const LeaseMachine::Gpu& gpu : machine.gpus) {
    if (needs.among && !needs.among->contains(gpu.index)) {
      continue;
    }
    ++allowed_;
    if (!gpu.is_used && !owned_.contains(gpu.key)) {
      free_.push_back(gpu);
    }
  }
}

bool LeaseSurvey::is_enough() const {
  return free_.size() >= needs_.gpus && cpus_ >= needs_.cpus && memory_ >= needs_.memory;
}

bool LeaseSurvey::is_never_enough() const {
  return allowed_ < needs_.gpus || all_cpus() < needs_.cpus || all_memory() < needs_.memory;
}

bool LeaseSurvey::has_earlier_waiter(std::uint64_t arrival, const std::string& name) const {
  return std::ranges::any_of(waiters_, [&](const auto& waiter) {
    return waiter.first == LeaseState::waiting && waiter.second < Place(arrival, name);
  });
}

std::size_t LeaseSurvey::position(std::uint64_t arrival, const std::string& name) const {
  return 1 + static_cast<std::size_t>(std::ranges::count_if(
                 waiters_, [&](const auto& waiter) { return waiter.second < Place(arrival, name); }));
}

bool LeaseSurvey::has_earlier_claim(std::uint64_t arrival, const std::string& name) const {
  return std::ranges::any_of(claims_, [&](const Place& claim) { return claim < Place(arrival, name); });
}

}  // namespace remote::rules
