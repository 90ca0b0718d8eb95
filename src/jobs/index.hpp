#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <remote/history.hpp>
#include <remote/job.hpp>
#include <sys/stat.h>

// The text of an index, of jobs or of launches: a header, and then a line for each job with everything that
// its job.json says, so that listing thousands of jobs opens one file. Lines are only appended; of several
// lines about one job, the last counts. A line has a checksum and the identity of the job.json that it speaks
// of, so a line that is garbage, cut short or out of date is recognized, and that job.json is read instead.

namespace remote::jobs {

// Which version of a file this is. Records are replaced by rename, so a new version is a new inode.
struct Fingerprint {
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;  // 0: of no file at all; matches nothing

  static Fingerprint of(const struct stat& info);
  bool matches(const Fingerprint& other) const { return size != 0 && *this == other; }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// The first lines.
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
    // Whether the job is over, as is_over() has it.
    bool over() const { return is_final(state) && !leftovers; }
    // What it ends with: its launch, or itself. When it did, as end_of() has it.
    std::string_view group;
    Instant end;
    bool hidden = false;
    std::string_view columns;  // all fields, for job() and launch()
  };

  // Takes any text; what is not a good line counts as `bad`.
  explicit Index(std::string text, std::string_view header = index_header);
  Index(const Index&) = delete;  // rows point into the text
  Index& operator=(const Index&) = delete;

  const Row* find(const JobId& id) const;
  std::size_t lines() const { return lines_; }
  std::size_t bad() const { return bad_; }

  // The whole job of a row of this index; nullopt where the row is damaged after all.
  static std::optional<Job> job(const Row& row);
  static std::optional<LaunchSummary> launch(const Row& row);

 private:
  std::string text_;
  std::unordered_map<std::string_view, Row> rows_;
  std::size_t lines_ = 0;
  std::size_t bad_ = 0;
};

}  // namespace remote::jobs
