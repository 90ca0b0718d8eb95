#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/path.hpp"
#include "agent/job/job_files.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

// Journals: append-only files with one JSON object a line.

namespace remote::agent {

constexpr std::size_t largest_journal = std::size_t{1} << 20U;

// Returns the valid entries. Skips other lines, such as those of later versions, and an incomplete last line.
template <typename Entry>
std::vector<Entry> parse_json_lines(std::string_view text) {
  std::vector<Entry> entries;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (auto entry = wire::try_read_json<Entry>(text.substr(0, end))) {
      entries.push_back(*std::move(entry));
    }
    text.remove_prefix(end + 1);
  }
  return entries;
}

// Reads at most 1 MiB.
template <typename Entry>
std::vector<Entry> read_json_lines(const Path& journal) {
  return parse_json_lines<Entry>(read_job_file(journal, largest_journal).value_or(""));
}

// Appends whole lines, each with its newline, by a single write. Creates a missing file with mode 0600.
// Returns false on failure. Several processes may append at the same time.
bool append_lines(const Path& journal, std::string_view lines);
// The file must be open for reading and, with O_APPEND, for writing.
bool append_lines(int fd, std::string_view lines);

template <typename Entry>
bool append_json_line(const Path& journal, const Entry& entry) {
  return append_lines(journal, wire::to_json_text(entry) + "\n");
}

}  // namespace remote::agent
