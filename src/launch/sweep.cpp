// The points of a sweep, and the command of each point.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <remote/sweep.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

constexpr std::size_t shown = 60;

void check_name(const std::string& name) {
  if (name.empty() || !std::ranges::all_of(name, is_name_character) ||
      (name.front() >= '0' && name.front() <= '9')) {
    throw Error::usage(fmt::format("'{}' is not a name for a parameter", visible_line(name, shown)), "",
                       "it has letters, digits and '_', and does not begin with a digit");
  }
}

Error too_many() {
  return Error::usage("the sweep is too large", fmt::format("it has more than {} points", most_sweep_points),
                      "sweep fewer values at a time");
}

// Expands "0..4" to 0 to 4; ranges may also count down.
bool add_range(const std::string& text, std::vector<std::string>& values) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    return false;
  }
  const auto first = parse_number<int>(text.substr(0, dots));
  const auto last = parse_number<int>(text.substr(dots + 2));
  if (!first || !last) {
    return false;
  }
  const int step = *first <= *last ? 1 : -1;
  for (std::int64_t value = *first;; value += step) {
    if (values.size() >= most_sweep_points) {
      throw too_many();
    }
    values.push_back(std::to_string(value));
    if (value == *last) {
      return true;
    }
  }
}

// The cells of the next line in a CSV text, starting at `at`. Supports quotes as spreadsheets write them.
std::vector<std::string> next_row(std::string_view csv, std::size_t& at, int& line) {
  std::vector<std::string> cells{""};
  const int first = line;
  bool quoted = false;
  for (; at < csv.size(); ++at) {
    const char c = csv[at];
    line += c == '\n' ? 1 : 0;
    if (quoted && c == '"' && at + 1 < csv.size() && csv[at + 1] == '"') {
      cells.back() += '"';
      ++at;
    } else if (c == '"' && (quoted || cells.back().empty())) {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      cells.emplace_back();
    } else if (!quoted && c == '\n') {
      ++at;
      break;
    } else if (quoted || c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) {
    throw Error::usage(fmt::format("cannot read line {} of the points", first), "a quote is not closed",
                       "a quote within quotes is written twice");
  }
  for (std::string& cell : cells) {
    cell = std::string(trim(cell));
  }
  return cells;
}

}  // namespace

SweepParameter parse_sweep_parameter(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw Error::usage(fmt::format("'{}' is not a parameter with values", visible_line(text, shown)), "",
                       "give a name and its values, such as lr=1e-3,1e-4 or seed=0..4");
  }
  SweepParameter parameter{text.substr(0, equals), {}};
  check_name(parameter.name);
  for (const std::string& value : split(text.substr(equals + 1), ',')) {
    if (!add_range(value, parameter.values)) {
      parameter.values.push_back(value);
    }
  }
  return parameter;
}

std::vector<SweepRow> parse_sweep_rows(const std::string& csv) {
  std::string_view text = csv;
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
  }
  std::size_t at = 0;
  int line = 1;
  const std::vector<std::string> names = next_row(text, at, line);
  std::ranges::for_each(names, check_name);
  std::vector<SweepRow> rows;
  while (at < text.size()) {
    const int first = line;
    const std::vector<std::string> cells = next_row(text, at, line);
    if (cells.size() == 1 && cells.front().empty()) {
      continue;  // an empty line
    }
    if (cells.size() != names.size()) {
      throw Error::usage(
          fmt::format("cannot read line {} of the points", first),
          fmt::format("it has {}, but the heading has {}", counted(cells.size(), "value"), names.size()),
          "give each row a value for each name of the heading");
    }
    if (rows.size() >= most_sweep_points) {
      throw too_many();
    }
    SweepRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) {
      row.emplace_back(names[i], cells[i]);
    }
  }
  if (rows.empty()) {
    throw Error::usage("there are no points", "the file has a heading and no other line",
                       "give a row for each point");
  }
  return rows;
}

std::vector<SweepRow> sweep_points(const std::vector<SweepParameter>& parameters,
                                   const std::vector<SweepRow>& rows) {
  std::vector<SweepRow> points = rows;
  if (points.empty()) {
    points.emplace_back();
  }
  for (const SweepParameter& parameter : parameters) {
    check_name(parameter.name);
    if (parameter.values.empty()) {
      throw Error::usage(fmt::format("the parameter {} has no values", parameter.name), "", "give some");
    }
    if (points.size() > most_sweep_points / parameter.values.size()) {
      throw too_many();
    }
    std::vector<SweepRow> more;
    for (const SweepRow& point : points) {
      for (const std::string& value : parameter.values) {
        more.push_back(point);
        more.back().emplace_back(parameter.name, value);
      }
    }
    points = std::move(more);
  }
  std::set<std::string> names;
  for (const auto& [name, value] : points.front()) {
    if (!names.insert(sweep_variable(name)).second) {
      throw Error::usage(fmt::format("the parameter {} is given twice", name), "names are not case-sensitive",
                         "give it once");
    }
  }
  if (names.empty()) {
    throw Error::usage("there are no points", "no parameter is given",
                       "give one with its values, such as lr=1e-3,1e-4");
  }
  return points;
}

std::string fill_sweep_word(const std::string& word, const SweepRow& point) {
  std::string filled;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if ((c != '{' && c != '}') || (i + 1 < word.size() && word[i + 1] == c)) {
      filled += c;
      i += c == '{' || c == '}' ? 1 : 0;
      continue;
    }
    const std::size_t end = c == '{' ? word.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      throw Error::usage(fmt::format("a brace in '{}' is unmatched", visible_line(word, shown)), "",
                         "write a literal brace twice: {{ or }}");
    }
    const std::string name = word.substr(i + 1, end - i - 1);
    const auto found = std::ranges::find(point, name, &SweepRow::value_type::first);
    if (found == point.end()) {
      std::vector<std::string> names;
      std::ranges::transform(point, std::back_inserter(names), &SweepRow::value_type::first);
      const std::string near = did_you_mean(name, names);
      throw Error::usage(fmt::format("no parameter has the name '{}'", visible_line(name, shown)),
                         fmt::format("the parameters are {}", join(names, ", ")),
                         near.empty() ? "write a literal brace twice: {{ or }}" : near);
    }
    filled += found->second;
    i = end;
  }
  return filled;
}

std::string sweep_point_text(const SweepRow& point) {
  std::string text;
  for (const auto& [name, value] : point) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

std::string sweep_variable(std::string_view parameter) {
  std::string name = "SWEEP_";
  for (const char c : parameter) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

}  // namespace remote
