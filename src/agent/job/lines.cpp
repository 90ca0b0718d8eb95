#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "agent/job/answers.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/record.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_file_text = 65536;
constexpr std::size_t most_lines = 65'536;
constexpr std::size_t most_reply_text = std::size_t{900} << 10U;  // the reply must fit into one message

// Accepts a file in a job's folder or in a direct subfolder: "job.err", "ranks/0.err".
bool is_plain_file(std::string_view file) {
  const std::size_t slash = file.find('/');
  if (slash != std::string_view::npos && !is_plain_file(file.substr(0, slash))) {
    return false;
  }
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  return wire::is_name(name) && name != "." && name != "..";
}

// Returns the part of a line after its last carriage return, as a terminal shows it after a progress bar.
std::string_view find_shown(std::string_view line) {
  const std::size_t last = line.substr(0, line.size() - std::min<std::size_t>(line.size(), 1)).rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

std::vector<std::string> read_shown_lines(const Path& path, std::size_t count) {
  const std::string text = read_end_of_file(path, most_file_text).value_or("");
  std::vector<std::string> lines;
  for (const std::string_view line : find_lines_of_last_attempt(text, count)) {
    lines.emplace_back(find_shown(line).substr(0, longest_output_line));
  }
  return lines;
}

// Space left in the reply.
struct Space {
  std::size_t bytes = most_reply_text;
  std::size_t lines = most_lines;
};

// Adds as many of the last lines as fit into the share.
void add_lines(std::vector<std::string>& all, std::vector<std::string> lines, Space share, Space& left) {
  std::size_t first = lines.size();
  while (first > 0 && share.lines > 0 && lines[first - 1].size() + 4 <= share.bytes) {
    const std::size_t bytes = lines[--first].size() + 4;
    share.bytes -= bytes;
    left.bytes -= bytes;
    --share.lines;
    --left.lines;
  }
  std::move(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(), std::back_inserter(all));
}

}  // namespace

wire::LinesReply read_last_lines(const Host& host, const wire::LinesRequest& request) {
  wire::LinesReply reply;
  const Path jobs = JobsFolder::of(host, request.place).jobs;
  std::size_t files = request.ids.size() * request.files.size();
  Space left;
  for (const std::string& id : request.ids) {
    for (const std::string& file : request.files) {
      const Path path = jobs / id / file;
      // The unused part of a share is available to the remaining files.
      const Space share{.bytes = left.bytes / files, .lines = left.lines / files};
      --files;
      if (is_plain_file(file) && (file.find('/') == std::string::npos || is_own_folder(path.parent_path()))) {
        add_lines(reply.lines, read_shown_lines(path, static_cast<std::size_t>(request.count)), share, left);
      }
    }
  }
  return reply;
}

}  // namespace remote::agent
