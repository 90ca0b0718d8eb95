#include "agent/slurm/ends.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::JobEnd;
using wire::ProcessEnd;

constexpr std::string_view dependency_failed = "DependencyNeverSatisfied";

// The content of slurm.end: Slurm's state and reason of a finished job.
struct EndNote {
  std::string state;
  std::string reason;
};

EndNote read_end_note(const Path& folder) {
  const std::string line = read_job_line(folder / "slurm.end").value_or("");
  const std::string_view text = trim(line);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  return {std::string(text.substr(0, end)), std::string(trim(text.substr(end)))};
}

// The last bytes of a regular file.
std::string read_tail(const Path& path, std::size_t size) {
  std::string text(size, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  ssize_t count = 0;
  if (fd >= 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    count = ::pread(fd, text.data(), size, std::max<off_t>(info.st_size - static_cast<off_t>(size), 0));
  }
  if (fd >= 0) {
    ::close(fd);
  }
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// "slurmstepd: error: Detected 1 oom-kill event(s)", or "… Exceeded job memory limit".
bool is_oom_line(std::string_view line) {
  constexpr std::string_view mark = "slurmstepd: error:";
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) {
    return false;
  }
  line.remove_prefix(at + mark.size());
  const std::size_t exceeded = line.find("xceeded ");
  if (exceeded != std::string_view::npos && line.find("memory limit", exceeded) != std::string_view::npos) {
    return true;
  }
  for (std::size_t oom = line.find("oom"); oom != std::string_view::npos; oom = line.find("oom", oom + 1)) {
    if (line.substr(std::min(oom + 4, line.size())).starts_with("kill")) {
      return true;
    }
  }
  return false;
}

// Whether Slurm killed it for exceeding its memory, which is recorded in the job's folder.
bool was_out_of_memory(const JobRecord& job) {
  if (read_own_history(job.folder).was_out_of_memory) {
    return true;
  }
  if (job.end && job.end->how.succeeded()) {
    return false;
  }
  bool found = read_end_note(job.folder).state == "OUT_OF_MEMORY";
  if (!found) {
    const std::vector<std::string> lines = split(read_tail(job.folder / "job.err", 16384), '\n');
    found = std::ranges::any_of(lines, is_oom_line);
  }
  if (!found) {
    return false;
  }
  const KeptJournalTime time(job.folder);
  return append_to_journal(job.folder, wire::OutOfMemory{read_wall_clock()});
}

// Parses a wait status. For a FAILED job, 0 and any other text count as exit 1.
ProcessEnd parse_wait_status(std::string_view text) {
  const auto status = parse_number<int>(text);
  if (!status || *status <= 0 || *status > 99'999) {
    return ProcessEnd::exited(1);
  }
  const int signal = *status % 128;
  if (signal == 0) {
    return ProcessEnd::exited(std::max(*status / 256 % 256, 1));
  }
  return signal <= 64 ? ProcessEnd::signalled(signal) : ProcessEnd::exited(1);
}

ProcessEnd ask_wait_status(const SlurmTools& tools, const SlurmRow& row) {
  // The job never ran, but has the wait status 1, which would be interpreted as SIGHUP.
  if (row.reason.starts_with("BadConstraints")) {
    return ProcessEnd::exited(1);
  }
  const RunResult answer = tools.call({"squeue", "-h", "-t", "all", "-j", row.number, "-O", "exit_code:.20"},
                                      std::chrono::seconds(2));
  const std::string line = answer.out.substr(0, answer.out.find('\n'));
  return parse_wait_status(line.substr(line.rfind(' ') + 1));
}

// Parses sacct's ExitCode of a failed job, "STATUS:SIGNAL".
ProcessEnd parse_exit_code(std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto code = parts.size() == 2 ? parse_number<int>(parts[0]) : std::nullopt;
  const auto signal = parts.size() == 2 ? parse_number<int>(parts[1]) : std::nullopt;
  if (!code || !signal || *signal < 0 || *signal > 64) {
    return ProcessEnd::exited(1);
  }
  if (*signal > 0) {
    return ProcessEnd::signalled(*signal);
  }
  return ProcessEnd::exited(*code > 0 && *code < 256 ? *code : 1);
}

// Converts a Slurm state to an end. `failed` is called for the state FAILED.
template <typename Failed>
std::optional<JobEnd> make_slurm_end(const SlurmTools& tools, std::string_view state,
                                     const std::string& until, const Failed& failed) {
  JobEnd end;
  end.how = ProcessEnd::signalled(15);
  end.by = "slurm";
  if (state == "COMPLETED") {
    end.how = ProcessEnd::exited(0);
  } else if (state == "OUT_OF_MEMORY") {
    end.how = ProcessEnd::signalled(9);
  } else if (state == "FAILED") {
    end.how = failed();
  } else if (state == "NODE_FAIL" || state == "BOOT_FAIL") {
    return std::nullopt;
  }
  end.at = read_slurm_time(tools, until);
  return end;
}

}  // namespace

bool put_slurm_note(const JobRecord& job, const std::string& name, const std::string& text) {
  return put_file(job.folder / ("slurm." + name), text + "\n");
}

bool is_slurm_time(std::string_view text) {
  constexpr std::string_view form = "0000-00-00T00:00:00";
  if (text.size() != form.size()) {
    return false;
  }
  std::array<unsigned, 6> numbers{};
  std::size_t part = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '0') {
      ++part;
      if (text[i] != form[i]) {
        return false;
      }
    } else if (text[i] < '0' || text[i] > '9') {
      return false;
    } else {
      numbers[part] = numbers[part] * 10 + static_cast<unsigned>(text[i] - '0');
    }
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(numbers[0])),
                                         std::chrono::month(numbers[1]), std::chrono::day(numbers[2]));
  return date.ok() && numbers[0] >= 1970 && numbers[3] < 24 && numbers[4] < 60 && numbers[5] <= 60;
}

std::optional<wire::Moment> read_slurm_time(const SlurmTools& tools, std::string text) {
  if (!is_slurm_time(text)) {
    return std::nullopt;
  }
  // Uses `date` instead of mktime(), whose time zones would make the compressed agent 48 KB larger.
  text[text.find('T')] = ' ';
  const RunResult answer = tools.call({"date", "-d", text, "+%s"}, std::chrono::seconds(2));
  const auto seconds = answer.succeeded() ? parse_number<std::int64_t>(trim(answer.out)) : std::nullopt;
  return seconds && *seconds >= 0 ? std::optional<wire::Moment>(std::chrono::seconds(*seconds))
                                  : std::nullopt;
}

std::optional<JobEnd> find_slurm_end(const SlurmTools& tools, const SlurmRow& row) {
  return make_slurm_end(tools, row.state, row.until, [&] { return ask_wait_status(tools, row); });
}

std::optional<AccountedEnd> SlurmAccounts::find(const std::string& number) {
  constexpr std::chrono::seconds most_time{5};
  if (number.empty() || has_failed_ || spent_ > most_time) {
    return std::nullopt;
  }
  const auto begin = std::chrono::steady_clock::now();
  const RunResult answer = tools_.call({"sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode,End"},
                                       std::chrono::seconds(2));
  spent_ += std::chrono::steady_clock::now() - begin;
  has_failed_ = !answer.succeeded();
  const std::string row = last_lines(answer.out, 1);
  const std::vector<std::string> words = split(row, '|');
  if (words.size() < 3) {
    return std::nullopt;
  }
  // "CANCELLED by 1000"
  const std::string state = words[0].substr(0, words[0].find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
  if (state.empty() || classify_slurm_state(state) != SlurmKind::ended) {
    return std::nullopt;
  }
  return AccountedEnd{state,
                      make_slurm_end(tools_, state, words.back(), [&] { return parse_exit_code(words[1]); })};
}

void keep_slurm_end(const Host& host, const JobRecord& job, const std::string& state,
                    const std::string& reason) {
  put_slurm_note(job, "end", state + " " + reason);
  if (state == "CANCELLED" && reason != dependency_failed && !read_history(host, job.folder, job.id).stop &&
      !was_out_of_memory(job)) {
    const KeptJournalTime time(job.folder);
    append_to_journal(job.folder,
                      wire::StopRequested{{.by = {.text = "scancel"}, .at = read_wall_clock()}, {}});
  }
}

std::string explain_slurm_end(const JobRecord& job) {
  if (was_out_of_memory(job)) {
    return "";
  }
  const EndNote note = read_end_note(job.folder);
  if (note.state.empty() || note.state == "COMPLETED") {
    return "";
  }
  if (note.state == "CANCELLED") {
    return note.reason == dependency_failed ? "the job that it depended on has failed" : "";
  }
  if (note.state != "FAILED") {
    return wire::to_line(note.state);
  }
  if (note.reason == "JobLaunchFailure") {
    return "Slurm could not run its batch script to the end (JobLaunchFailure)";
  }
  return note.reason.empty() || note.reason == "NonZeroExitCode" ? ""
                                                                 : wire::to_line("FAILED, " + note.reason);
}

}  // namespace remote::agent
