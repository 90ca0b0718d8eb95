#include "jobs/index.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote::jobs {
namespace {

constexpr std::string_view header = "remote job index 4\n";
constexpr std::size_t checksum_digits = 16;

// In the manner of FNV-1a, but eight bytes at a step: listing ten thousand jobs sums up megabytes. It guards
// against accidents, not against an enemy (who could edit job.json as well).
std::uint64_t checksum(std::string_view text) {
  constexpr std::uint64_t prime = 1099511628211U;
  std::uint64_t hash = 14695981039346656037U ^ text.size();
  while (!text.empty()) {
    std::uint64_t block = 0;
    const std::size_t count = std::min(text.size(), sizeof block);
    std::memcpy(&block, text.data(), count);
    hash = (hash ^ block) * prime;
    hash ^= hash >> 32U;  // else a change in the high bits of two blocks could cancel out
    text.remove_prefix(count);
  }
  return hash;
}

void append_escaped(std::string& line, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '\\':
        line += "\\\\";
        break;
      case '\t':
        line += "\\t";
        break;
      case '\n':
        line += "\\n";
        break;
      default:
        line += c;
    }
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

// Takes tab-separated fields off the front of a line.
class Reader {
 public:
  explicit Reader(std::string_view line) : rest_(line) {}

  std::string_view next() {
    if (ended_) {
      good_ = false;
      return {};
    }
    const std::size_t at = rest_.find('\t');
    const std::string_view field = rest_.substr(0, at);
    ended_ = at == std::string_view::npos;
    rest_ = ended_ ? std::string_view() : rest_.substr(at + 1);
    return field;
  }
  std::string text() { return unescaped(next()); }
  template <typename Number>
  std::optional<Number> maybe() {
    const std::string_view field = next();
    const auto value = parse_number<Number>(field);
    good_ = good_ && (value || field.empty());
    return value;
  }
  template <typename Number>
  Number number() {
    const auto value = parse_number<Number>(next());
    good_ = good_ && value;
    return value.value_or(Number{});
  }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }
  bool ended() const { return ended_; }

 private:
  std::string_view rest_;
  bool ended_ = false;
  bool good_ = true;
};

template <typename Number>
void append_maybe(std::string& line, const std::optional<Number>& value) {
  line += '\t';
  if (value) {
    line += std::to_string(*value);
  }
}

void append_text(std::string& line, std::string_view text) {
  line += '\t';
  append_escaped(line, text);
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

std::string_view index_header() {
  return header;
}

std::string index_line(const Fingerprint& print, const Job& job) {
  std::string line = fmt::format("{}\t{}\t{}\t{}\t{}\t{}", job.id.text(), print.inode, print.mtime_ns,
                                 print.size, to_string(job.state), job.key);
  append_maybe(line, job.pid);
  append_maybe(line, job.result ? job.result->code() : std::nullopt);
  append_maybe(line, job.result ? job.result->signal() : std::nullopt);
  append_maybe(line, job.rank);
  append_maybe(line, job.world_size);
  append_maybe(line, std::optional(job.created_at));
  append_maybe(line, job.started_at);
  append_maybe(line, job.ended_at);
  append_maybe(line, job.checked_at);
  append_maybe(line, job.failed_ms);
  line += job.hidden ? "\t1" : "\t0";
  append_text(line, job.server);
  append_text(line, job.reason);
  append_text(line, job.command);
  append_text(line, job.remote_folder.project);
  append_text(line, job.remote_folder.jobs_folder);
  append_text(line, job.launch ? job.launch->text() : "");
  append_maybe(line, std::optional(job.tags.size()));
  for (const std::string& tag : job.tags) {
    append_text(line, tag);
  }
  return fmt::format("{:016x}\t{}\n", checksum(line), line);
}

Index::Index(std::string text) : text_(std::move(text)) {
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
    Reader reader(line.substr(checksum_digits + 1));
    const std::string_view id = reader.next();
    Row row;
    row.print.inode = reader.number<std::uint64_t>();
    row.print.mtime_ns = reader.number<std::int64_t>();
    row.print.size = reader.number<std::uint64_t>();
    const auto state = parse_job_state(reader.next());
    row.key = reader.number<int>();
    row.rest = reader.rest();
    if (!reader.good() || !state) {
      ++bad_;
      continue;
    }
    row.state = *state;
    rows_.insert_or_assign(id, row);
  }
}

const Index::Row* Index::find(const JobId& id) const {
  const auto found = rows_.find(id.text());
  return found == rows_.end() ? nullptr : &found->second;
}

std::optional<Job> Index::job(const JobId& id, const Row& row) {
  Reader reader(row.rest);
  Job job;
  job.id = id;
  job.state = row.state;
  job.key = row.key;
  job.pid = reader.maybe<int>();
  const auto code = reader.maybe<int>();
  const auto signal = reader.maybe<int>();
  if (code) {
    job.result = ExitStatus::exited(*code);
  } else if (signal) {
    job.result = ExitStatus::signalled(*signal);
  }
  job.rank = reader.maybe<int>();
  job.world_size = reader.maybe<int>();
  job.created_at = reader.number<std::int64_t>();
  job.started_at = reader.maybe<std::int64_t>();
  job.ended_at = reader.maybe<std::int64_t>();
  job.checked_at = reader.maybe<std::int64_t>();
  job.failed_ms = reader.maybe<std::int64_t>();
  job.hidden = reader.next() == "1";
  job.server = reader.text();
  job.reason = reader.text();
  job.command = reader.text();
  job.remote_folder.project = reader.text();
  job.remote_folder.jobs_folder = reader.text();
  job.launch = JobId::parse(reader.next());
  const auto tags = reader.number<std::size_t>();
  for (std::size_t i = 0; i < tags && reader.good(); ++i) {
    job.tags.push_back(reader.text());
  }
  if (!reader.good() || !reader.ended()) {
    return std::nullopt;
  }
  return job;
}

}  // namespace remote::jobs
