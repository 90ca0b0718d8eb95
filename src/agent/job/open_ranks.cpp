#include "agent/job/open_ranks.hpp"

#include <algorithm>
#include <csignal>
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
constexpr std::size_t most_open_text = 512;

struct FoundRank {
  std::string number;
  Path file;
  OpenRank open;
};

// Reads "PID EARLIER LABEL" and, if the rank has failed, the line of its end.
std::optional<OpenRank> parse_open_rank(const std::string& text) {
  const std::vector<std::string> words = split_words(text);
  const auto pid = words.size() < 3 ? std::nullopt : parse_number<int>(words[0]);
  const auto earlier = words.size() < 3 ? std::nullopt : parse_number<std::uint64_t>(words[1]);
  const auto label = words.size() < 3 ? std::nullopt : parse_number<int>(words[2]);
  if (!pid || !earlier || !label) {
    return std::nullopt;
  }
  OpenRank open{*pid, *earlier, *label};
  const std::vector<std::string> rest(words.begin() + 3, words.end());
  if (const auto end = parse_end(join(rest, " ")); end && !end->never_started && end->end.at) {
    open.end = end->end;
  }
  return open;
}

std::vector<FoundRank> find_open_ranks(const Path& job_folder) {
  std::vector<FoundRank> ranks;
  for (const std::string& name : list_names(job_folder)) {
    if (!name.starts_with(open_prefix)) {
      continue;
    }
    const std::string number = name.substr(open_prefix.size());
    const auto open = parse_open_rank(read_job_file(job_folder / name, most_open_text).value_or(""));
    if (parse_number<int>(number) && open) {
      ranks.push_back({number, job_folder / name, *open});
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
  // A daemon of Open MPI prints "[host:00000] …".
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

bool write_open_rank(const Path& job_folder, const std::string& rank, const OpenRank& open) {
  return put_file(job_folder / (std::string(open_prefix) + rank),
                  text::format("{} {} {} {}\n", open.pid, open.earlier, open.label,
                               open.end ? to_end_line(*open.end) : ""));
}

bool has_open_rank(const Path& job_folder) {
  const std::vector<std::string> names = list_names(job_folder);
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with(open_prefix); });
}

std::string explain_signal_of_mpirun(int signal) {
  return text::format("remote: ended by {}, as mpirun does it when another rank has failed",
                      signal == SIGTERM ? "TERM" : "KILL");
}

std::optional<int> close_open_ranks(const Host& host, const Path& job_folder, wire::Moment ended) {
  std::optional<int> job_code;
  ::mkdir((job_folder / "failures").c_str(), 0700);
  int tries = 0;  // shared by all ranks, so that other servers do not have to wait long
  for (const FoundRank& rank : find_open_ranks(job_folder)) {
    // A killed rank takes a moment to exit, and its last output may not be written yet.
    for (; tries < 25 && (lives(host, rank.open.pid) || lives(host, rank.open.label)); ++tries) {
      ::usleep(20'000);
    }
    if (!exists(rank.file) || lives(host, rank.open.pid)) {
      continue;  // the rank records its end itself
    }
    const Path own_words = job_folder / "ranks" / (rank.number + ".err");
    std::vector<std::string> lines =
        read_last_rank_lines(is_file(own_words) ? own_words : job_folder / "job.err", rank.open.earlier);
    wire::JobEnd end{.how = wire::ProcessEnd::signalled(9), .at = ended, .by = "mpirun"};
    if (rank.open.end) {
      end = *rank.open.end;
      if (end.how.signal == SIGTERM) {
        lines.push_back(explain_signal_of_mpirun(SIGTERM));
      }
    } else if (const std::optional<int> code = find_abort_code(lines, rank.number)) {
      end.how = wire::ProcessEnd::exited(*code);
      job_code = code;
    } else {
      lines.push_back(explain_signal_of_mpirun(SIGKILL));
    }
    std::string text = text::format("{}\n", end.at->count());
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
