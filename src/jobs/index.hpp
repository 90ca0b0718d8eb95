#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <remote/history.hpp>
#include <remote/job.hpp>
#include <sys/stat.h>

// The text of an index of jobs or launches: a header, and a line per job with the content of its job.json, so
// that listing thousands of jobs opens only one file. Lines are only appended; if there are several about a
// job, the last one counts. A line contains a checksum and the identity of its job.json. This way, invalid,
// truncated or outdated lines are detected, and job.json is read instead.

namespace remote::jobs {

// Identifies a version of a file. Records are replaced by rename, so a new version has a new inode.
struct Fingerprint {
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;  // 0: no file; matches nothing

  static Fingerprint of(const struct stat& info);
  bool matches(const Fingerprint& other) const { return size != 0 && *this == other; }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// The first line of each index.
inline constexpr std::string_view index_header = "remote job index 12\n";
inline constexpr std::string_view launch_index_header = "remote launch index 2\n";
std::string index_line(const Fingerprint& print, const Job& job);
std::string index_line(const Fingerprint& print, const LaunchSummary& launch);

class Index {
 public:
  struct Row {
    Fingerprint print;
    JobState state = JobState::starting;
    std::optional<int> leftovers;
    int key = 0;
    bool over() const { return is_final(state) && !leftovers; }
    // The launch that the job belongs to, or else the job itself, and the result of end_of().
    std::string_view group;
    Instant end;
    bool hidden = false;
    std::string_view columns;  // all fields, for job() and launch()
  };

  // Accepts any text; invalid lines count as `bad`.
  explicit Index(std::string text, std::string_view header = index_header);
  Index(const Index&) = delete;  // rows point into the text
  Index& operator=(const Index&) = delete;

  const Row* find(const JobId& id) const;
  std::size_t lines() const { return lines_; }
  std::size_t bad() const { return bad_; }

  // The complete job in a row of this index; nullopt if the row is damaged.
  static std::optional<Job> job(const Row& row);
  static std::optional<LaunchSummary> launch(const Row& row);

 private:
  std::string text_;
  std::unordered_map<std::string_view, Row> rows_;
  std::size_t lines_ = 0;
  std::size_t bad_ = 0;
};

}  // namespace remote::jobs
