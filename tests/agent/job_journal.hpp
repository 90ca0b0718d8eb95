#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/job/journal.hpp"
#include "agent/job/json_lines.hpp"
#include "agent/job/record.hpp"
#include "base/strings.hpp"

// Lines of a job's journal. The short form of an end is that of the records of ranks, "exit 3 1700000000123
// supervisor", or "never 0 1700000000123 claim".

namespace remote::agent::test {

inline std::string format_entry(const wire::JobEntry& entry) {
  return wire::to_json_text(entry) + "\n";
}

inline std::string format_end(std::string_view short_form) {
  const EndLine line = parse_end(trim(short_form)).value();
  if (line.never_started) {
    return format_entry(wire::JobNeverStarts{line.end.at.value()});
  }
  return line.end.by == "kill" ? format_entry(wire::JobFoundEnded{line.end})
                               : format_entry(wire::JobEnded{line.end});
}

// Parses "SIGNAL BY MS", such as "15 user:ada 1700000000000".
inline wire::StopRequested make_stop(std::string_view short_form) {
  const std::vector<std::string> words = split_words(short_form);
  return {.stop = {.signal = parse_number<int>(words.at(0)).value(),
                   .by = parse_stop_word(words.at(1)).value(),
                   .at = wire::Moment(parse_number<long long>(words.at(2)).value())},
          .stopper = {},
          .records_end = false};
}
inline std::string format_stop(std::string_view short_form) {
  return format_entry(make_stop(short_form));
}

inline std::string format_survivors(std::vector<wire::RecordedSurvivor> survivors) {
  wire::StopFinished finished;
  finished.survivors = std::move(survivors);
  return format_entry(finished);
}

inline void append(const std::filesystem::path& job_folder, std::string_view lines) {
  ASSERT_TRUE(append_lines(Path(job_folder.string()) / journal_name, lines));
}

// The stop in a journal, in its short form; "" if there is none.
inline std::string read_stop(const std::filesystem::path& job_folder) {
  const auto stop = read_own_history(job_folder.string()).stop;
  return stop ? std::to_string(stop->signal) + " " + to_stop_word(stop->by) + " " +
                    std::to_string(stop->at.count())
              : "";
}

// The end in a journal, in its short form; "" if there is none.
inline std::string read_end(const std::filesystem::path& job_folder) {
  const rules::JobHistory recorded = read_own_history(job_folder.string());
  if (recorded.never_starts_since) {
    return "never 0 " + std::to_string(recorded.never_starts_since->count()) + " claim\n";
  }
  return recorded.end ? to_end_line(*recorded.end) + "\n" : "";
}

}  // namespace remote::agent::test
