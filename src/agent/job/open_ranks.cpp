#include "agent/job/open_ranks.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "agent/job/regular_file.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view open_prefix = "open.rank.";
constexpr std::size_t most_words = 16384;
constexpr std::size_t most_record_lines = 50;

// The content of open.rank.RANK: "PID EARLIER LABEL".
struct OpenRank {
  std::string number;
  Path file;
  int pid = 0;
  std::uint64_t earlier = 0;  // the size of its stderr when it started
  int label = 0;              // pid of the process that labels its output lines
};

std::vector<OpenRank> find_open_ranks(const Path& job_folder) {
  std::vector<OpenRank> ranks;
  for (const std::string& name : list_names(job_folder)) {
    if (!name.starts_with(open_prefix)) {
      continue;
    }
    const std::vector<std::string> words = read_job_words(job_folder / name);
    const std::string number = name.substr(open_prefix.size());
    const auto pid = words.empty() ? std::nullopt : parse_number<int>(words[0]);
    const auto earlier = words.size() < 2 ? std::nullopt : parse_number<std::uint64_t>(words[1]);
    if (parse_number<int>(number) && pid && earlier) {
      ranks.push_back({number, job_folder / name, *pid, *earlier,
                       words.size() > 2 ? parse_number<int>(words[2]).value_or(0) : 0});
    }
  }
  return ranks;
}

bool lives(const Host& host, int pid) {
  const auto process = pid > 0 ? read_process(host, pid) : std::nullopt;
  return process && !process->is_dead();
}

// Returns at most most_words bytes from the end of a regular file, starting no earlier than `begin`.
std::string read_rank_words(const Path& file, std::uint64_t begin) {
  const RegularFile opened(file);
  if (!opened) {
    return "";
  }
  const std::uint64_t size = opened.size();
  const std::uint64_t first = std::max(begin, size > most_words ? size - most_words : 0);
  std::string text(size > first ? static_cast<std::size_t>(size - first) : 0, '\0');
  text.resize(opened.read(text.data(), text.size(), first));
  return text;
}

bool is_of_mpirun(std::string_view line) {
  // A daemon of Open MPI: "[host:00000] …".
  const std::size_t tag = line.find("] ");
  if (line.starts_with('[') && line.find_first_of(" ]") == tag && line.substr(0, tag).ends_with(":00000")) {
    return true;
  }
  for (const std::string_view program : {"[proxy", "[mpiexec@"}) {
    if (line.starts_with(program)) {
      return line.find('@') < line.find(']');
    }
  }
  return false;
}

// Returns the last lines, except lines of mpirun itself.
std::vector<std::string> choose_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string& line : split(text, '\n')) {
    if (!is_of_mpirun(line)) {
      lines.push_back(std::move(line));
    }
  }
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  lines.erase(lines.begin(),
              lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), most_record_lines)));
  return lines;
}

// Returns the CODE of the last line "Abort(CODE) on node RANK …" for this rank.
std::optional<int> find_abort_code(const std::vector<std::string>& lines, const std::string& rank) {
  std::optional<int> found;
  const std::string tail = ") on node " + rank + " ";
  for (const std::string& line : lines) {
    const std::size_t end = line.find(')');
    if (line.starts_with("Abort(") && end != std::string::npos &&
        std::string_view(line).substr(end).starts_with(tail)) {
      const auto code = parse_number<int>(std::string_view(line).substr(6, end - 6));
      found = code ? std::optional(*code & 255) : found;
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> read_last_rank_lines(const Path& file, std::uint64_t begin) {
  return choose_lines(read_rank_words(file, begin));
}

bool has_open_rank(const Path& job_folder) {
  const std::vector<std::string> names = list_names(job_folder);
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with(open_prefix); });
}

std::optional<int> close_open_ranks(const Host& host, const Path& job_folder, wire::Moment ended) {
  std::optional<int> job_code;
  ::mkdir((job_folder / "failures").c_str(), 0700);
  int tries = 0;  // shared by all ranks, so that other servers do not have to wait long
  for (const OpenRank& rank : find_open_ranks(job_folder)) {
    // A killed rank takes a moment to exit, and its last output may not be written yet.
    for (; tries < 25 && (lives(host, rank.pid) || lives(host, rank.label)); ++tries) {
      ::usleep(20'000);
    }
    if (!exists(rank.file) || lives(host, rank.pid)) {
      continue;  // the rank records its end itself
    }
    const Path own_words = job_folder / "ranks" / (rank.number + ".err");
    std::vector<std::string> lines =
        read_last_rank_lines(is_file(own_words) ? own_words : job_folder / "job.err", rank.earlier);
    wire::JobEnd end{.how = wire::ProcessEnd::signalled(9), .at = ended, .by = "mpirun"};
    if (const std::optional<int> code = find_abort_code(lines, rank.number)) {
      end.how = wire::ProcessEnd::exited(*code);
      job_code = code;
    } else {
      lines.emplace_back("remote: ended by KILL, as mpirun does it when another rank has failed");
    }
    std::string text = text::format("{}\n", ended.count());
    for (const std::string& line : lines) {
      text += line + "\n";
    }
    if (put_file(job_folder / "failures" / ("rank." + rank.number), text)) {
      write_job_file(job_folder / "failures" / "agent", rank.number + " " + to_end_line(end) + "\n",
                     O_APPEND);
    }
  }
  return job_code;
}

}  // namespace remote::agent
