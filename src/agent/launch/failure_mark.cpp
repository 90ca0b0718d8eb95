#include "agent/launch/failure_mark.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/job/last_words.hpp"
#include "agent/job/output_end.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "rules/members.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_mark_text = 2000;
constexpr std::string_view decimal_digits = "0123456789";

struct SickPhrase {
  std::string_view phrase;
  std::string_view mark;  // one of rules::sicknesses
};
// Sorted by importance.
constexpr std::array<SickPhrase, 10> sick_phrases{{
    {"fallen off the bus", "gpu"},
    {"GPU is lost", "gpu"},
    {"Unable to determine the device handle", "gpu"},
    {"no CUDA-capable device is detected", "gpu"},
    {"uncorrectable ECC", "ecc"},
    {"ECC error", "ecc"},
    {"NVRM: Xid", "xid"},
    {"No space left on device", "disk"},
    {"Input/output error", "disk"},
    {"Stale file handle", "disk"},
}};

std::string_view find_sickness(std::string_view text) {
  const auto found = std::ranges::find_if(
      sick_phrases, [&](const SickPhrase& sick) { return text.find(sick.phrase) != std::string_view::npos; });
  return found != sick_phrases.end() ? found->mark : std::string_view();
}

// FNV-1a. It only has to map equal lines to equal marks.
std::string digest_line(std::string_view line) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char c : line) {
    digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return text::format("{:x}", digest);
}

// torch prints this warning after any error.
constexpr std::string_view exit_warning = "destroy_process_group() was not called before program exit";

bool explains_failure(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") != std::string_view::npos &&
         line.find(exit_warning) == std::string_view::npos;
}

std::string_view find_last_words(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.rfind('\n');
    const std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
    if (explains_failure(line)) {
      return line;
    }
    text = text.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
  return {};
}

char to_lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t skip_while(std::string_view text, std::size_t at, std::string_view characters) {
  return std::min(text.find_first_not_of(characters, at), text.size());
}

// Returns the end of a number at `at` that differs between runs: that of a process ("pid 12", "Process=12")
// or an address ("0xff"), after a word boundary. Returns `at` if there is none. `kept` receives the length of
// the part that is the same in all runs.
std::size_t skip_run_number(std::string_view text, std::size_t at, std::size_t& kept) {
  const auto starts_with = [&](std::string_view word) {
    return std::ranges::equal(text.substr(at, word.size()), word, {}, to_lower_letter);
  };
  kept = 0;
  if (starts_with("0x")) {
    const std::size_t end = skip_while(text, at + 2, "0123456789abcdefABCDEF");
    return end > at + 2 ? end : at;
  }
  for (const std::string_view word : {"pid", "process"}) {
    const std::size_t blank = at + word.size();
    const std::size_t number = starts_with(word) ? skip_while(text, blank, " =:") : blank;
    const std::size_t end = skip_while(text, number, decimal_digits);
    if (number > blank && end > number) {
      kept = number - at;
      return end;
    }
  }
  return at;
}

// Removes the details that differ between two runs with the same failure: times in torch's log, process ids,
// addresses, and how much GPU memory others use.
std::string strip_run_details(std::string_view line) {
  constexpr std::string_view out_of_memory = "CUDA out of memory. Tried to allocate ";
  if (const std::size_t found = line.find(out_of_memory); found != std::string_view::npos) {
    line = line.substr(0, line.find(". GPU ", found + out_of_memory.size()));
  }
  std::string stripped;
  for (std::size_t i = 0; i < line.size();) {
    // A log line starts like "[E1126 16:05:40.816896340 ".
    if (line[i] == '[' && i + 6 < line.size() &&
        std::string_view("IWEF").find(line[i + 1]) != std::string_view::npos) {
      const std::size_t date = skip_while(line, i + 2, decimal_digits);
      const std::size_t time =
          date < line.size() && line[date] == ' ' ? skip_while(line, date + 1, "0123456789:.") : date;
      if (date == i + 6 && time > date + 1 && time < line.size() && line[time] == ' ') {
        stripped += '[';
        i = time + 1;
        continue;
      }
    }
    std::size_t kept = 0;
    const bool at_boundary = i == 0 || !is_name_character(line[i - 1]);
    const std::size_t end = at_boundary ? skip_run_number(line, i, kept) : i;
    if (end > i) {
      stripped += line.substr(i, kept);
      i = end;
    } else {
      stripped += line[i++];
    }
  }
  return stripped;
}

}  // namespace

void mark_failure(wire::RankFailure& failure, const Path& file, bool has_time) {
  const std::string end = read_end_of_file(file, most_mark_text, Links::refuse).value_or("");
  std::string_view text = find_last_attempt(end);
  failure.mark = find_sickness(text);
  failure.after_peer = failure.mark.empty() && blames_peer(text);
  if (!failure.mark.empty() || failure.after_peer) {
    return;
  }
  if (has_time) {
    const std::size_t newline = text.find('\n');
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  failure.mark = digest_line(strip_run_details(find_last_words(text)));
}

}  // namespace remote::agent
