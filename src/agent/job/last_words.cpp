#include "agent/job/last_words.hpp"

#include <algorithm>
#include <array>

namespace remote::agent {
namespace {

constexpr std::size_t most_last_words = 16384;
constexpr std::size_t most_last_line = 400;
constexpr std::string_view traceback = "Traceback (most recent call last)";

// '^' matches the beginning of a line, '#' any number of digits.
constexpr std::array<std::string_view, 22> peer_phrases{
    "Connection reset",
    "Connection closed",
    "Connection refused",
    "Connection was likely closed",
    "Broken pipe",
    "connectFullMesh failed",
    "Socket Timeout",
    "Socket closed",
    "DistNetworkError",
    "DistStoreError",
    "Timed out waiting #ms for recv operation",
    "Timed out waiting #ms for send operation",
    "remote process exited",
    "NCCL communicator was aborted",
    "NCCL operations have failed or timed out",
    "Watchdog caught collective operation timeout",
    "^remote: ended by TERM, as ",
    "^remote: ended by KILL, as ",
    "^remote: exited with 14, as ",
    "^remote: mpirun has ended",
    "has lost communication with a remote daemon",
    "assert (!closed) failed",
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool contains_number(std::string_view text, std::string_view before, std::string_view after) {
  for (std::size_t at = text.find(before); at != std::string_view::npos; at = text.find(before, at + 1)) {
    std::string_view rest = text.substr(at + before.size());
    while (!rest.empty() && is_digit(rest.front())) {
      rest.remove_prefix(1);
    }
    if (rest.starts_with(after)) {
      return true;
    }
  }
  return false;
}

bool contains_line_start(std::string_view text, std::string_view start) {
  for (std::size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') {
      return true;
    }
  }
  return false;
}

bool contains_phrase(std::string_view text, std::string_view phrase) {
  if (phrase.starts_with('^')) {
    return contains_line_start(text, phrase.substr(1));
  }
  const std::size_t number = phrase.find('#');
  if (number != std::string_view::npos) {
    return contains_number(text, phrase.substr(0, number), phrase.substr(number + 1));
  }
  return text.find(phrase) != std::string_view::npos;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(std::string_view(" \t\v\f\0", 5)) == std::string_view::npos;
}

// Counts bytes at the beginning that continue a truncated UTF-8 character.
std::size_t count_continuation_bytes(std::string_view text) {
  std::size_t count = 0;
  while (count < 3 && count < text.size() && (static_cast<unsigned char>(text[count]) & 0xc0U) == 0x80) {
    ++count;
  }
  return count;
}

struct Output {
  Path path;
  std::optional<struct stat> info{};

  bool is_empty() const { return !info || !S_ISREG(info->st_mode) || info->st_size == 0; }
};

Output look_at_output(const Path& path) {
  return {path, look_at(path)};
}

bool was_written_later(const Output& one, const Output& other) {
  if (!one.info || !other.info) {
    return one.info.has_value();
  }
  return is_newer(*one.info, *other.info);
}

}  // namespace

bool blames_peer(std::string_view text) {
  text = text.substr(text.size() - std::min(text.size(), most_last_words));
  text = find_last_attempt(text);
  if (const std::size_t last = text.rfind(traceback); last != std::string_view::npos) {
    text = text.substr(last);
  }
  return std::ranges::any_of(peer_phrases,
                             [&](std::string_view phrase) { return contains_phrase(text, phrase); });
}

bool file_blames_peer(const Path& path, Links links) {
  const std::optional<std::string> text = read_end_of_file(path, most_last_words, links);
  return text && blames_peer(*text);
}

std::optional<std::string> read_last_line(const Path& job_folder) {
  const Output out = look_at_output(job_folder / "job.out");
  const Output err = look_at_output(job_folder / "job.err");
  const Output& newest = !err.is_empty() && was_written_later(err, out) ? err : out;
  if (newest.is_empty()) {
    return std::nullopt;
  }
  const std::string text = read_end_of_file(newest.path, most_last_line).value_or("");
  std::string_view rest = text;
  if (text.size() == most_last_line) {
    rest.remove_prefix(count_continuation_bytes(text));
  }
  while (!rest.empty()) {
    const std::size_t end = rest.find_last_of("\r\n");
    const std::string_view line = end == std::string_view::npos ? rest : rest.substr(end + 1);
    if (!is_blank(line)) {
      std::string shown(line);
      std::ranges::replace(shown, '\0', ' ');
      return shown;
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }
  return std::nullopt;
}

}  // namespace remote::agent
