#include "agent/slurm/queue.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::array<std::string_view, 7> queued_states{
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
constexpr std::array<std::string_view, 9> ended_states{"BOOT_FAIL",     "CANCELLED", "COMPLETED",
                                                       "DEADLINE",      "FAILED",    "NODE_FAIL",
                                                       "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"};

constexpr std::size_t max_number = 20;

bool is_made_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_digits(std::string_view text) {
  return is_made_of(text, "0123456789") && text.size() <= max_number;
}

}  // namespace

SlurmKind classify_slurm_state(std::string_view state) {
  if (std::ranges::find(queued_states, state) != queued_states.end()) {
    return SlurmKind::queued;
  }
  return std::ranges::find(ended_states, state) != ended_states.end() ? SlurmKind::ended : SlurmKind::running;
}

std::string read_slurm_number(const Path& folder) {
  const std::vector<std::string> words = read_job_words(folder / "slurm");
  if (words.empty()) {
    return "";
  }
  const std::vector<std::string> parts = split(words[0], '_');
  return parts.size() <= 2 && std::ranges::all_of(parts, is_digits) ? words[0] : "";
}

void SlurmQueue::ask(std::chrono::milliseconds age) {
  using Clock = std::chrono::steady_clock;
  if (asked_at_ && Clock::now() - *asked_at_ <= age) {
    return;
  }
  rows_.clear();
  numbers_.clear();
  asked_time_ = std::time(nullptr);
  trouble_ = find_process_limit(host_);
  if (trouble_.empty() && !tools_.find()) {
    trouble_ = "there is no squeue on this server: is it the login node of a Slurm cluster?";
  }
  if (trouble_.empty()) {
    const RunResult answer = tools_.call({"squeue", "-h", "-r", "-t", "all", "-u",
                                          std::to_string(::geteuid()), "-o", "%F|%K|%T|%N|%e|%S|%r|%j"},
                                         std::chrono::seconds(2), true);
    if (answer.succeeded()) {
      parse(answer.out);
    } else {
      const std::string line = answer.timed_out ? "" : find_last_line(answer.out);
      trouble_ = "Slurm does not answer" + (line.empty() ? "" : ": " + line);
    }
  }
  asked_at_ = Clock::now();
}

bool SlurmQueue::may_be_older_than(const Path& file) const {
  const auto info = look_at(file);
  return info && info->st_mtime + 1 >= asked_time_;
}

void SlurmQueue::parse(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t bar = line.rfind('|');
    if (bar == std::string_view::npos) {
      continue;
    }
    const std::vector<std::string> words = split(line.substr(0, bar), '|');
    if (words.size() < 6 || !is_digits(words[0]) || !is_made_of(words[2], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")) {
      continue;
    }
    SlurmRow row{.number = words[0] + (is_digits(words[1]) ? "_" + words[1] : ""),
                 .state = words[2],
                 .nodes = wire::is_word(words[3], "_.,[]-") ? words[3] : "",
                 .until = words[4],
                 .begin = words[5],
                 .reason = words.size() > 6 ? words[6] : ""};
    if (row.reason == "None" || row.reason == "(null)") {
      row.reason.clear();
    }
    const std::string_view name = line.substr(bar + 1);
    if (name.starts_with("remote-")) {
      numbers_.try_emplace(std::string(name), row.number);
    }
    std::string number = row.number;
    rows_.insert_or_assign(std::move(number), std::move(row));
  }
}

const SlurmRow* SlurmQueue::find(const std::string& id, const std::string& number) const {
  const auto named = numbers_.find("remote-" + id);
  const auto row = rows_.find(!number.empty() || named == numbers_.end() ? number : named->second);
  return row == rows_.end() ? nullptr : &row->second;
}

}  // namespace remote::agent
