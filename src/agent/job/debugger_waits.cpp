#include "agent/job/debugger_waits.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/jobs.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_wait_name = 64;
constexpr std::size_t longest_wait_file = 4000;
constexpr std::size_t longest_wait_error = 1000;
constexpr std::size_t most_wait_digits = 9;

struct WaitRecord {
  ProcessId process;
  DebuggerWait wait;
};

// Removes and returns the first word, skipping leading spaces.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::optional<int> parse_wait_number(std::string_view text) {
  return text.size() <= most_wait_digits && !text.starts_with('-') ? parse_number<int>(text) : std::nullopt;
}

// Parses PID START RANK LINE ERROR FILE. RANK and ERROR may be "-".
std::optional<WaitRecord> parse_wait(std::string_view text) {
  const auto pid = parse_wait_number(take_word(text));
  const std::string_view start = take_word(text);
  const std::string_view rank = take_word(text);
  const auto line = parse_wait_number(take_word(text));
  const std::string_view error = take_word(text);
  text = trim(text);
  const auto rank_number = parse_wait_number(rank);
  if (!pid || !line || (!rank_number && rank != "-") || error.empty() || error.size() > longest_wait_error ||
      !wire::is_word(error, "._-?") || text.size() > longest_wait_file) {
    return std::nullopt;
  }
  WaitRecord record{.process = {*pid, parse_number<std::uint64_t>(start).value_or(0)}, .wait = {}};
  record.wait.rank = rank_number;
  record.wait.file = wire::to_line(text, 4096);
  record.wait.line = *line;
  record.wait.error = error == "-" ? "" : error;
  return record;
}

bool is_wait_name(std::string_view name) {
  return name.size() <= longest_wait_name &&
         name.find_first_not_of("0123456789.") == std::string_view::npos && !name.starts_with('.');
}

}  // namespace

std::vector<DebuggerWait> find_debugger_waits(const Host& host, const JobRecord& job) {
  std::vector<DebuggerWait> waits;
  const Path folder = job.folder / "debug";
  if (!is_own_folder(folder)) {
    return waits;
  }
  const bool in_container = exists(job.folder / "container");  // pids differ inside the container
  for (const std::string& name : list_names(folder)) {
    const std::optional<std::string> line = is_wait_name(name) ? read_job_line(folder / name) : std::nullopt;
    std::optional<WaitRecord> record = parse_wait(line.value_or(""));
    if (!record || (!in_container && !is_alive(host, record->process))) {
      continue;
    }
    record->wait.id = name;
    waits.push_back(std::move(record->wait));
    if (waits.size() == wire::max_waits) {
      break;
    }
  }
  return waits;
}

}  // namespace remote::agent
