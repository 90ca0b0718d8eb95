#include "project/report/numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/decimal.hpp"
#include "base/failure_lines.hpp"
#include "base/strings.hpp"

namespace remote::project {
namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::size_t longest_name = 40;

// Possible x-axes of a curve, finest first.
constexpr std::array counters{"step", "global_step", "iteration", "iter", "it", "batch", "update", "epoch"};

// Words before numbers that are not measurements.
constexpr std::array no_names{
    "rank", "local_rank", "world_size", "pid",  "of",   "in",    "at",     "on",
    "for",  "after",      "port",       "gpu",  "cuda", "seed",  "device", "node",
    "line", "version",    "python",     "from", "to",   "the",   "took",   "job",
    "code", "exitcode",   "exit_code",  "exit", "task", "errno", "signal", "restart",
    "has",  "have",       "is",         "are",  "was",  "were",  "and",    "or",
    "with", "by",         "than",       "all",  "over", "about", "a",      "only"};

// Prefixes of lines that launchers and torch's agents write between the program's own lines.
constexpr std::array not_the_programs{"remote: ",    "WARNING:torch", "INFO:torch",
                                      "ERROR:torch", "srun: ",        "slurmstepd: "};

// Counters that run through the whole training: if one goes back, training resumed from a checkpoint.
constexpr std::array whole_counters{"step", "global_step", "iteration", "epoch"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_inner(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-' || c == '@';
}

bool is_counter(std::string_view name) {
  return std::ranges::find(counters, name) != counters.end();
}

// The text without terminal escape sequences.
std::string without_escapes(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i = std::min(line.find_first_of("ABCDEFGHJKSTfmhlnsu", i + 2), line.size());
    } else {
      text += line[i];
    }
  }
  return text;
}

// Whether it is the id of a run, a commit or a device.
bool is_id(std::string_view name) {
  constexpr std::size_t shortest = 12;
  return name.size() >= shortest && name.find_first_not_of("0123456789abcdef-") == std::string_view::npos &&
         name.find_first_of("0123456789") != std::string_view::npos;
}

void put(std::vector<NamedNumber>& all, std::string name, double value) {
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name.empty() || name.size() > longest_name || is_id(name) || !std::isfinite(value) ||
      std::ranges::find(no_names, name) != no_names.end()) {
    return;
  }
  const auto known = std::ranges::find(all, name, &NamedNumber::name);
  if (known != all.end()) {
    known->value = value;
  } else {
    all.push_back({std::move(name), value});
  }
}

std::vector<NamedNumber> numbers_of_json(std::string_view line) {
  std::vector<NamedNumber> all;
  const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      const bool good = !name.empty() && is_letter(name.front()) && std::ranges::all_of(name, is_inner);
      if (good && value.is_number()) {
        put(all, name, value.get<double>());
      }
    }
  }
  return all;
}

// The number at the start of the text, unless the following characters make it part of a date, a time, an
// address or a word. Sets `length` to its number of characters.
std::optional<double> number_at(std::string_view text, std::size_t& length) {
  const std::size_t plus = text.starts_with('+') ? 1 : 0;
  const auto value = decimal_at(text.substr(plus), length);
  if (!value) {
    return std::nullopt;
  }
  length += plus;
  const std::string_view rest = text.substr(length);
  if (rest.empty()) {
    return value;
  }
  const char next = rest.front();
  const char after = rest.size() > 1 ? rest[1] : ' ';
  if (next == ':' || next == '-' || next == '.' || next == '_') {
    if (is_digit(after) || is_letter(after) || next == '-' || next == '_') {
      return std::nullopt;
    }
  }
  // A unit is at most three letters: "12.5ms", "3.2GB".
  const std::size_t unit = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_letter) - rest.begin());
  if (unit > 3 || (unit > 0 && unit < rest.size() && is_digit(rest[unit]))) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

bool is_loss(std::string_view name) {
  return name.find("loss") != std::string_view::npos;
}

std::vector<NamedNumber> numbers_of(std::string_view line) {
  const std::string text = without_escapes(trim(line.substr(0, longest_line)));
  if (text.starts_with('{')) {
    return numbers_of_json(text);
  }
  std::vector<NamedNumber> all;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_letter(text[i]) || (i > 0 && is_inner(text[i - 1]))) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_inner(text[end])) {
      ++end;
    }
    const std::string name = text.substr(i, end - i);
    i = end;
    std::size_t at = std::min(text.find_first_not_of(' ', end), text.size());
    if (at < text.size() && (text[at] == '=' || text[at] == ':')) {
      at = std::min(text.find_first_not_of(' ', at + 1), text.size());
    } else if (at == end && at < text.size()) {
      // In a traceback, a parenthesis starts the arguments of a call: "torch.manual_seed(42)".
      const bool is_call = text[at] == '(' && name.find('.') != std::string::npos;
      if ((text[at] != '[' && text[at] != '(') || is_call) {
        continue;
      }
    }
    if (at < text.size() && (text[at] == '[' || text[at] == '(')) {
      ++at;  // "Epoch [3/10]"
    }
    std::size_t length = 0;
    if (const auto value = number_at(std::string_view(text).substr(at), length)) {
      i = at + length;
      const bool place = at == end + 1 && text[end] == ':' && i < text.size() && text[i] == ':';
      if (!place) {  // "train.py:12: …" is a line number
        put(all, name, *value);
      }
    }
  }
  return all;
}

namespace {

// torch labels its log and the tracebacks of a rank with "[rank0]:".
bool is_torchs(std::string_view line) {
  return without_rank_label(line).size() < line.size() || is_torch_log(line) || is_cuda_error(line);
}

bool is_the_programs(std::string_view line) {
  return !is_torchs(line) && !is_nccl_log(line) && !is_python_warning(line) &&
         std::ranges::none_of(not_the_programs, [&](const char* begin) { return line.starts_with(begin); });
}

}  // namespace

void take_numbers(std::string_view line, std::vector<NamedNumber>& all) {
  for (NamedNumber& number : is_the_programs(line) ? numbers_of(line) : std::vector<NamedNumber>()) {
    const auto known = std::ranges::find(all, number.name, &NamedNumber::name);
    if (known != all.end()) {
      known->value = number.value;
    } else if (all.size() < CurveReader::most_names) {
      all.push_back(std::move(number));
    }
  }
}

void CurveReader::take(std::string_view line) {
  if (!is_the_programs(line)) {
    return;
  }
  const std::vector<NamedNumber> numbers = numbers_of(line);
  const auto epoch = std::ranges::find(numbers, "epoch", &NamedNumber::name);
  const NamedNumber* over = nullptr;
  for (const char* counter : counters) {
    const auto found = std::ranges::find(numbers, counter, &NamedNumber::name);
    if (found != numbers.end()) {
      over = &*found;
      break;
    }
  }
  for (const NamedNumber& number : numbers) {
    if (is_counter(number.name) || (!points_.contains(number.name) && points_.size() >= most_names)) {
      continue;
    }
    Points& points = points_[number.name];
    const bool next_epoch = epoch != numbers.end() && epoch->value > points.epoch;
    points.epoch = epoch != numbers.end() ? epoch->value : points.epoch;
    if (over != nullptr && over->name == points.over && !next_epoch &&
        std::ranges::find(whole_counters, over->name) != whole_counters.end()) {
      go_back(points, over->value);
    }
    add(points, over, number.value);
  }
}

void CurveReader::go_back(Points& points, double to) {
  if (points.at.empty() || points.at.back() <= to) {
    return;
  }
  while (!points.at.empty() && points.at.back() >= to) {
    points.at.pop_back();
    points.index.pop_back();
    points.values.pop_back();
  }
}

void CurveReader::add(Points& points, const NamedNumber* over, double value) const {
  if (points.seen == 0 && over != nullptr) {
    points.over = over->name;
  }
  if (over == nullptr || over->name != points.over ||
      (!points.at.empty() && over->value < points.at.back())) {
    points.over.clear();  // no counter, or it started again: use the order of the values
  }
  if (points.seen++ % points.every != 0) {
    return;
  }
  points.at.push_back(over != nullptr ? over->value : 0);
  points.index.push_back(static_cast<double>(points.seen - 1));
  points.values.push_back(value);
  if (points.values.size() >= 2 * most_points_) {
    for (std::vector<double>* list : {&points.at, &points.index, &points.values}) {
      for (std::size_t i = 0; 2 * i < list->size(); ++i) {
        (*list)[i] = (*list)[2 * i];
      }
      list->resize((list->size() + 1) / 2);
    }
    points.every *= 2;
  }
}

std::vector<Curve> CurveReader::curves(std::size_t begun, std::size_t most) const {
  std::vector<const std::pair<const std::string, Points>*> order;
  for (const auto& one : points_) {
    if (one.second.values.size() > 1 && (!one.second.over.empty() || one.second.seen > begun)) {
      order.push_back(&one);
    }
  }
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto* one) { return std::pair(is_loss(one->first), one->second.seen); });
  std::vector<Curve> all;
  for (const auto* one : order) {
    if (all.size() == most) {
      break;
    }
    const Points& points = one->second;
    Curve curve;
    curve.name = one->first;
    curve.over = points.over;
    curve.at = points.over.empty() ? points.index : points.at;
    curve.values = points.values;
    curve.thinned = points.every > 1;
    all.push_back(std::move(curve));
  }
  return all;
}

}  // namespace remote::project
