#include "jobs/index.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/strings.hpp"
#include "jobs/job_fields.hpp"

namespace remote::jobs {
namespace {

constexpr std::size_t checksum_digits = 16;

// Similar to FNV-1a, but processes eight bytes per step, because listing ten thousand jobs checks megabytes.
// It protects against accidents, not against attackers, who could also edit job.json.
std::uint64_t checksum(std::string_view text) {
  constexpr std::uint64_t prime = 1099511628211U;
  std::uint64_t hash = 14695981039346656037U ^ text.size();
  while (!text.empty()) {
    std::uint64_t block = 0;
    const std::size_t count = std::min(text.size(), sizeof block);
    std::memcpy(&block, text.data(), count);
    hash = (hash ^ block) * prime;
    hash ^= hash >> 32U;  // otherwise changes in the high bits of two blocks could cancel out
    text.remove_prefix(count);
  }
  return hash;
}

void append_escaped(std::string& line, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '\t' || c == '\n') {
      line += '\\';
    }
    line += c == '\t' ? 't' : c == '\n' ? 'n' : c;
  }
}

std::string unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) {
    return std::string(text);
  }
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    const char c = text[++i];
    plain += c == 't' ? '\t' : c == 'n' ? '\n' : c;
  }
  return plain;
}

// Appends the fields of a job as columns, each preceded by a tab.
class LineWriter {
 public:
  explicit LineWriter(std::string& line) : line_(line) {}

  template <typename Value>
  void field(const char* /*name*/, const Value& value, int /*low*/ = 0) {
    line_ += '\t';
    put(value);
  }
  void milliseconds(const char* name, const std::optional<ExactInstant>& value) { field(name, value); }
  void no_restart(const char* name, const std::optional<NoRestart>& value) { field(name, value); }
  void recorded(const char* name, const auto& value) { field(name, value); }
  void result(const std::optional<ExitStatus>& value) {
    field("exit_code", value ? value->code() : std::nullopt);
    field("signal", value ? value->signal() : std::nullopt);
  }
  void reason(const char* /*name*/, const JobReason& value) { visit_fields_of_reason(value, *this); }
  void usage(const char* name, const std::optional<JobUsage>& value) {
    field(name, value.has_value());
    if (value) {
      visit_fields_of_usage(*value, *this);
    }
  }
  void attempts(const char* name, const std::vector<Attempt>& all) {
    field(name, all.size());
    for (const Attempt& attempt : all) {
      visit_fields_of_attempt(attempt, *this);
    }
  }
  void mark(const char* name, bool value) { field(name, value); }
  void folder(const char* name, const Job& job) {
    field(name, job.remote_folder.project);
    field(name, job.remote_folder.jobs_folder);
  }
  void values(const char* name, const std::vector<std::pair<std::string, std::string>>& values) {
    field(name, values.size());
    for (const auto& [parameter, value] : values) {
      field("", parameter);
      field("", value);
    }
  }
  void point(const char* name, const std::optional<SweepPoint>& value) {
    field(name, value.has_value());
    if (value) {
      visit_fields_of_point(*value, *this);
    }
  }

 private:
  template <std::integral Number>
  void put(Number value) {
    line_ += std::to_string(value);
  }
  template <typename Unit>
  void put(std::chrono::sys_time<Unit> value) {
    put(value.time_since_epoch().count());
  }
  void put(const JobId& value) { line_ += value.text(); }
  void put(JobState value) { line_ += to_string(value); }
  void put(JobReason::Kind value) { line_ += kind_name(value); }
  void put(RestartCause value) { line_ += to_string(value); }
  void put(NoRestart value) { line_ += to_string(value); }
  void put(const std::string& value) { append_escaped(line_, value); }
  void put(const Hung& value) {
    put(value.at);
    line_ += fmt::format(" {} ", value.stood.count());
    put(value.moved_at.value_or(Instant()));
  }
  void put(const std::vector<std::string>& values) {
    put(values.size());
    for (const std::string& value : values) {
      field("", value);
    }
  }
  void put(const std::vector<NamedNumber>& values) {
    put(values.size());
    for (const NamedNumber& number : values) {
      field("", number.name);
      field("", fmt::format("{}", number.value));
    }
  }
  template <typename Value>
  void put(const std::optional<Value>& value) {
    if (value) {
      put(*value);
    }
  }

  std::string& line_;
};

// Reads the columns of a line.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  template <typename Value>
  void field(const char* /*name*/, Value& value, int /*low*/ = 0) {
    take(next(), value);
  }
  void milliseconds(const char* name, std::optional<ExactInstant>& value) { field(name, value); }
  void no_restart(const char* name, std::optional<NoRestart>& value) { field(name, value); }
  void recorded(const char* name, auto& value) { field(name, value); }
  void result(std::optional<ExitStatus>& value) {
    std::optional<int> code;
    std::optional<int> signal;
    field("exit_code", code);
    field("signal", signal);
    if (code) {
      value = ExitStatus::exited(*code);
    } else if (signal) {
      value = ExitStatus::signalled(*signal);
    }
  }
  void reason(const char* /*name*/, JobReason& value) { visit_fields_of_reason(value, *this); }
  void usage(const char* name, std::optional<JobUsage>& value) {
    bool known = false;
    field(name, known);
    if (known) {
      visit_fields_of_usage(value.emplace(), *this);
    }
  }
  void attempts(const char* name, std::vector<Attempt>& all) {
    std::size_t count = 0;
    for (field(name, count); count > 0 && good_; --count) {
      visit_fields_of_attempt(all.emplace_back(), *this);
    }
  }
  void mark(const char* name, bool& value) { field(name, value); }
  void folder(const char* name, Job& job) {
    field(name, job.remote_folder.project);
    field(name, job.remote_folder.jobs_folder);
  }
  void values(const char* name, std::vector<std::pair<std::string, std::string>>& values) {
    std::size_t count = 0;
    for (field(name, count); count > 0 && good_; --count) {
      auto& [parameter, value] = values.emplace_back();
      field("", parameter);
      field("", value);
    }
  }
  void point(const char* name, std::optional<SweepPoint>& value) {
    bool known = false;
    field(name, known);
    if (known) {
      visit_fields_of_point(value.emplace(), *this);
    }
  }

  std::string_view next() {
    if (ended_) {
      good_ = false;
      return {};
    }
    const std::size_t at = rest_.find('\t');
    const std::string_view column = rest_.substr(0, at);
    ended_ = at == std::string_view::npos;
    rest_ = ended_ ? std::string_view() : rest_.substr(at + 1);
    return column;
  }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }
  bool ended() const { return ended_; }

 private:
  template <typename Value>
  void set(Value& value, const std::optional<Value>& found) {
    good_ = good_ && found;
    value = found.value_or(value);
  }
  template <std::integral Number>
  void take(std::string_view column, Number& value) {
    set(value, parse_number<Number>(column));
  }
  template <typename Unit>
  void take(std::string_view column, std::chrono::sys_time<Unit>& value) {
    typename Unit::rep count = 0;
    take(column, count);
    value = std::chrono::sys_time<Unit>(Unit(count));
  }
  static void take(std::string_view column, bool& value) { value = column == "1"; }
  void take(std::string_view column, JobId& value) { set(value, JobId::parse(column)); }
  void take(std::string_view column, JobState& value) { set(value, parse_job_state(column)); }
  void take(std::string_view column, JobReason::Kind& value) { set(value, parse_kind(column)); }
  void take(std::string_view column, RestartCause& value) { set(value, parse_restart_cause(column)); }
  void take(std::string_view column, NoRestart& value) { set(value, parse_no_restart(column)); }
  static void take(std::string_view column, std::string& value) { value = unescaped(column); }
  void take(std::string_view column, Hung& value) {
    const std::vector<std::string> words = split(column, ' ');
    if (words.size() != 3) {
      good_ = false;
      return;
    }
    take(words[0], value.at);
    int seconds = 0;
    take(words[1], seconds);
    value.stood = std::chrono::seconds(seconds);
    if (take(words[2], value.moved_at); value.moved_at == Instant()) {
      value.moved_at.reset();
    }
  }
  void take(std::string_view column, std::vector<std::string>& values) {
    std::size_t count = 0;
    for (take(column, count); count > 0 && good_; --count) {
      field("", values.emplace_back());
    }
  }
  void take(std::string_view column, std::vector<NamedNumber>& values) {
    std::size_t count = 0;
    for (take(column, count); count > 0 && good_; --count) {
      NamedNumber& number = values.emplace_back();
      field("", number.name);
      set(number.value, parse_decimal(next()));
    }
  }
  template <typename Value>
  void take(std::string_view column, std::optional<Value>& value) {
    if (!column.empty()) {
      take(column, value.emplace());
    }
  }

  std::string_view rest_;
  bool ended_ = false;
  bool good_ = true;
};

template <typename Value>
std::string line_of(const Fingerprint& print, const JobId& group, Instant end, bool hidden,
                    const Value& value) {
  std::string line = fmt::format("{}\t{}\t{}\t{}\t{}\t{:d}", print.inode, print.mtime_ns, print.size,
                                 group.text(), end.time_since_epoch().count(), hidden);
  LineWriter columns(line);
  visit_fields(value, columns);
  return fmt::format("{:016x}\t{}\n", checksum(line), line);
}

template <typename Value>
std::optional<Value> value_of(const Index::Row& row) {
  LineReader columns(row.columns);
  Value value;
  visit_fields(value, columns);
  return columns.good() && columns.ended() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace

Fingerprint Fingerprint::of(const struct stat& info) {
#ifdef __APPLE__
  const auto& time = info.st_mtimespec;
#else
  const auto& time = info.st_mtim;
#endif
  return {static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec,
          static_cast<std::uint64_t>(info.st_size)};
}

std::string index_line(const Fingerprint& print, const Job& job) {
  return line_of(print, job.launch.value_or(job.id), end_of(job), job.hidden, job);
}
std::string index_line(const Fingerprint& print, const LaunchSummary& launch) {
  return line_of(print, launch.id, launch.began_at, false, launch);
}

Index::Index(std::string text, std::string_view header) : text_(std::move(text)) {
  std::string_view left = text_;
  if (!left.starts_with(header)) {
    bad_ = left.empty() ? 0 : 1;
    return;
  }
  left.remove_prefix(header.size());
  rows_.reserve(left.size() / 256);
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    ++lines_;
    std::uint64_t sum = 0;
    const auto [at, error] =
        std::from_chars(line.data(), line.data() + std::min(line.size(), checksum_digits), sum, 16);
    if (error != std::errc() || line.size() <= checksum_digits || line[checksum_digits] != '\t' ||
        at != line.data() + checksum_digits || sum != checksum(line.substr(checksum_digits + 1))) {
      ++bad_;
      continue;
    }
    LineReader columns(line.substr(checksum_digits + 1));
    Row row;
    columns.field("inode", row.print.inode);
    columns.field("mtime", row.print.mtime_ns);
    columns.field("size", row.print.size);
    row.group = columns.next();
    columns.field("end", row.end);
    columns.field("hidden", row.hidden);
    row.columns = columns.rest();
    // The first fields of all jobs and launches.
    columns.field("key", row.key);
    const std::string_view id = columns.next();
    columns.next();  // server, or name
    columns.field("state", row.state);
    columns.field("processes_left", row.leftovers);
    if (!columns.good()) {
      ++bad_;
      continue;
    }
    rows_.insert_or_assign(id, row);
  }
}

const Index::Row* Index::find(const JobId& id) const {
  const auto found = rows_.find(id.text());
  return found == rows_.end() ? nullptr : &found->second;
}

std::optional<Job> Index::job(const Row& row) {
  return value_of<Job>(row);
}
std::optional<LaunchSummary> Index::launch(const Row& row) {
  return value_of<LaunchSummary>(row);
}

}  // namespace remote::jobs
