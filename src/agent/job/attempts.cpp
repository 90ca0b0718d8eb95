#include "agent/job/attempts.hpp"

#include <algorithm>
#include <string>

#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_attempts_bytes = std::size_t{1} << 20U;
// All attempts of a job must fit into one message, together with the rest of its report.
constexpr std::size_t most_names_bytes = std::size_t{400} << 10U;
constexpr std::size_t longest_name = 256;
constexpr std::size_t most_names = 4096;

std::optional<long long> parse_within(std::string_view text, long long least, long long most) {
  const auto number = parse_number<long long>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

std::optional<wire::Moment> parse_attempt_time(std::string_view text) {
  const auto ms = parse_within(text, wire::moment_limit.least, wire::moment_limit.most);
  return ms ? std::optional(wire::Moment(*ms)) : std::nullopt;
}

std::optional<RestartCause> parse_cause(std::string_view name) {
  const auto& names = wire::enum_names<RestartCause>;
  const auto found = std::ranges::find(names, name);
  return found != names.end() ? std::optional(static_cast<RestartCause>(found - names.begin()))
                              : std::nullopt;
}

// `code` is an exit code if the cause is an exit, and a signal otherwise.
std::optional<wire::ProcessEnd> parse_attempt_end(RestartCause cause, std::string_view code) {
  if (cause == RestartCause::exit) {
    const auto number = parse_within(code, 0, 255);
    return number ? std::optional(wire::ProcessEnd::exited(static_cast<int>(*number))) : std::nullopt;
  }
  const auto number = parse_within(code, 1, 64);
  return number ? std::optional(wire::ProcessEnd::signalled(static_cast<int>(*number))) : std::nullopt;
}

std::optional<std::string> parse_name(std::string_view word) {
  const std::optional<std::string> name = wire::percent_decode(word);
  return name ? std::optional(wire::to_line(*name, longest_name)) : std::nullopt;
}

// Parses comma-separated names, or "-" for none.
std::optional<std::vector<std::string>> parse_names(std::string_view word) {
  std::vector<std::string> names;
  if (word == "-") {
    return names;
  }
  for (const std::string& part : split(word, ',')) {
    auto name = parse_name(part);
    if (!name || names.size() == most_names) {
      return std::nullopt;
    }
    names.push_back(*std::move(name));
  }
  return names;
}

std::size_t count_name_bytes(const wire::AttemptRecord& attempt) {
  std::size_t bytes = attempt.server.size();
  for (const std::string& name : attempt.without) {
    bytes += name.size() + 4;
  }
  return bytes;
}

}  // namespace

std::optional<wire::AttemptRecord> parse_attempt(std::string_view line) {
  const std::vector<std::string> words = split_words(line);
  if (words.size() != 9 && words.size() != 10) {
    return std::nullopt;
  }
  constexpr long long largest = 1 << 30;
  const auto number = parse_within(words[0], 1, largest);
  const auto began_at = parse_attempt_time(words[1]);
  const auto failed_at = parse_attempt_time(words[2]);
  const auto next_at = parse_attempt_time(words[3]);
  const auto cause = parse_cause(words[4]);
  if (!number || !began_at || !failed_at || !next_at || !cause) {
    return std::nullopt;
  }
  const auto end = parse_attempt_end(*cause, words[5]);
  const auto rank = parse_within(words[6], 0, largest);
  const auto left_out = parse_within(words[7], 0, largest);
  const auto server = parse_name(words[8]);
  auto without = parse_names(words.size() == 10 ? words[9] : "-");
  if ((!end && words[5] != "-") || (!rank && words[6] != "-") || !left_out || !server || !without) {
    return std::nullopt;
  }
  wire::AttemptRecord attempt{.number = static_cast<int>(*number),
                              .began_at = *began_at,
                              .failed_at = *failed_at,
                              .next_at = *next_at,
                              .cause = *cause};
  attempt.end = end;
  if (rank) {
    attempt.rank = static_cast<int>(*rank);
  }
  attempt.left_out = *left_out != 0;
  attempt.server = *server;
  attempt.without = *std::move(without);
  return attempt;
}

std::vector<wire::AttemptRecord> read_attempts(const Path& job_folder) {
  std::vector<wire::AttemptRecord> attempts;
  const std::string text = read_job_file(job_folder / "attempts", most_attempts_bytes).value_or("");
  std::string_view rest = text;
  std::size_t bytes = 0;
  // A last line without a newline is still being written.
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    auto attempt = parse_attempt(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!attempt) {
      continue;
    }
    bytes += count_name_bytes(*attempt);
    if (attempts.size() == wire::max_attempts || bytes > most_names_bytes) {
      break;
    }
    attempts.push_back(*std::move(attempt));
  }
  return attempts;
}

}  // namespace remote::agent
