#include "agent/job/output_begin.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/processes.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t block_size = 65536;

// Returns the offset after the last newline before `offset`. Searches at most one block.
std::uint64_t find_line_begin(const RegularFile& file, std::uint64_t offset) {
  std::array<char, block_size> block{};
  const std::size_t size = std::min<std::uint64_t>(block.size(), offset);
  const std::string_view text(block.data(), file.read(block.data(), size, offset - size));
  const std::size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? offset - size : offset - size + newline + 1;
}

std::uint64_t find_since(const RegularFile& file, std::uint64_t offset, std::chrono::seconds time) {
  if (file.info().st_mtime < time.count() || offset > file.size()) {
    return file.size();
  }
  return offset > 0 ? find_line_begin(file, offset) : 0;
}

// Reads the last lines of the marks, which cover at least the last `since`. The supervisor writes a line
// every ten seconds, and a few more after a restart.
std::vector<std::string> read_marks(const Path& path, std::chrono::seconds since) {
  constexpr std::int64_t longest_line = 64;
  constexpr std::int64_t most = std::int64_t{64} << 20U;
  const RegularFile file(path);
  if (!file) {
    return {};
  }
  const std::int64_t lines = std::min<std::int64_t>(since.count() / 10 + 10, most / longest_line);
  std::string text(std::min<std::uint64_t>(file.size(), static_cast<std::uint64_t>(lines * longest_line)), 0);
  const std::uint64_t begin = file.size() - text.size();
  text.resize(file.read(text.data(), text.size(), begin));
  std::vector<std::string> result = split(text, '\n');
  if (begin > 0 && !result.empty()) {
    result.erase(result.begin());  // an incomplete line
  }
  return result;
}

}  // namespace

std::uint64_t find_last_lines(const Host& host, const RegularFile& file, int lines) {
  std::array<char, block_size> block{};
  std::uint64_t end = file.size();
  if (lines <= 0) {
    return end;
  }
  int newlines = 0;
  while (end > 0 && !host.is_cancelled()) {
    const std::size_t size = std::min<std::uint64_t>(block.size(), end);
    const std::uint64_t begin = end - size;
    if (file.read(block.data(), size, begin) < size) {
      return file.size();  // the file was truncated
    }
    for (std::size_t i = size; i > 0; --i) {
      const bool is_last = begin + i == file.size();
      if (block[i - 1] == '\n' && !is_last && ++newlines == lines) {
        return begin + i;
      }
    }
    end = begin;
  }
  return end;
}

std::pair<std::uint64_t, std::uint64_t> find_recent(const RegularFile& out, const RegularFile& err,
                                                    const Path& marks, std::chrono::seconds since) {
  const std::chrono::seconds time = std::chrono::floor<std::chrono::seconds>(read_wall_clock()) - since;
  std::uint64_t out_offset = 0;
  std::uint64_t err_offset = 0;
  for (const std::string& line : read_marks(marks, since)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() != 3) {
      continue;
    }
    const auto at = parse_number<std::uint64_t>(words[0]);
    const auto out_size = parse_number<std::uint64_t>(words[1]);
    const auto err_size = parse_number<std::uint64_t>(words[2]);
    if (!at || !out_size || !err_size) {
      continue;
    }
    if (time.count() < 0 || *at > static_cast<std::uint64_t>(time.count()) * 1000) {
      break;
    }
    out_offset = *out_size;
    err_offset = *err_size;
  }
  return {find_since(out, out_offset, time), find_since(err, err_offset, time)};
}

}  // namespace remote::agent
