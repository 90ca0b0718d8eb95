#include "agent/slurm/usage.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/slurm/ends.hpp"
#include "agent/slurm/queue.hpp"
#include "base/decimal.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view digits = "0123456789";

// The number at the beginning of the text; 0 if there is none.
double read_leading_number(std::string_view text) {
  std::size_t length = 0;
  const double value = decimal_at(text, length).value_or(0);
  return value > 0 && value < 1e15 ? value : 0;
}

int round_to_int(double value) {
  return static_cast<int>(std::lround(std::clamp(value, 0.0, 2e9)));
}

// Parses "614400K" as MiB. Before Slurm 21.08, it had a suffix: n (per node) or c (per CPU).
double parse_memory(std::string_view text) {
  if (text.ends_with('n') || text.ends_with('c')) {
    text.remove_suffix(1);
  }
  const std::size_t end = text.find_first_not_of("0123456789.");
  return end != 0 && end != std::string_view::npos && text.substr(end) == "K"
             ? read_leading_number(text) / 1024
             : 0;
}

// Parses "2-03:00:00" or "03:20.500" as seconds; nullopt for any other text.
std::optional<double> parse_cpu_time(std::string_view text) {
  double seconds = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (dash == 0 || text.substr(0, dash).find_first_not_of(digits) != std::string_view::npos) {
      return std::nullopt;
    }
    seconds = read_leading_number(text.substr(0, dash)) * 24;
    text.remove_prefix(dash + 1);
  }
  if (text.empty() || text.find_first_not_of("0123456789:.") != std::string_view::npos) {
    return std::nullopt;
  }
  bool is_first = dash != std::string_view::npos;
  for (const std::string& part : split(text, ':')) {
    seconds = seconds * (is_first ? 1 : 60) + read_leading_number(part);
    is_first = false;
  }
  return seconds;
}

struct UsageRowId {
  std::string job;  // "12" or "12_3"
  bool is_step = false;
};

// Parses "12", "12_3", "12.batch" and "12_3.0".
std::optional<UsageRowId> parse_row_id(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view step = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  const std::string job(text.substr(0, dot));
  const std::vector<std::string> numbers = split(job, '_');
  const bool is_job =
      !numbers.empty() && numbers.size() <= 2 && std::ranges::all_of(numbers, [](const auto& one) {
        return !one.empty() && one.find_first_not_of(digits) == std::string::npos;
      });
  const bool is_step = !step.empty() && step.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") ==
                                            std::string_view::npos;
  if (!is_job || (dot != std::string_view::npos && !is_step)) {
    return std::nullopt;
  }
  return UsageRowId{job, is_step};
}

// The output of sacct.
struct Accounts {
  std::map<std::string, JobUsage> used;
  bool may_come = false;  // sacct answered or was too slow, so a later call can return more
};

Accounts ask_accounts(SlurmTools& tools, const std::set<std::string>& numbers) {
  constexpr std::size_t at_once = 4000;  // Linux limits a program argument to 128 KiB
  Accounts accounts;
  if (numbers.empty() || !tools.find() || !tools.has("sacct")) {
    return accounts;
  }
  std::vector<std::string> some;
  auto next = numbers.begin();
  while (next != numbers.end()) {
    some.clear();
    for (; next != numbers.end() && some.size() < at_once; ++next) {
      some.push_back(*next);
    }
    const RunResult answer =
        tools.call({"sacct", "-n", "-P", "--units=K", "-j", join(some, ","), "-o",
                    "JobID,State,ElapsedRaw,TotalCPU,AllocCPUS,NNodes,ReqMem,MaxRSS,NTasks"},
                   std::chrono::seconds(2));
    accounts.used.merge(parse_usage_rows(answer.out));
    accounts.may_come = answer.code == 0 || answer.code == 124;
  }
  return accounts;
}

std::string to_text(const JobUsage& usage) {
  return std::to_string(usage.cpus) + " " + std::to_string(usage.cpu_percent) + " " +
         std::to_string(usage.memory_mib) + " " + std::to_string(usage.requested_mib);
}

}  // namespace

std::map<std::string, JobUsage> parse_usage_rows(std::string_view text) {
  struct Sums {
    double cpus = 0;
    double percent = 0;
    double requested = 0;
    double memory = 0;  // the maximum of the steps
  };
  std::map<std::string, Sums> sums;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split(line, '|');
    const auto id = words.size() == 9 ? parse_row_id(words[0]) : std::nullopt;
    if (!id) {
      continue;
    }
    const double elapsed = read_leading_number(words[2]);
    const double cpus = std::floor(read_leading_number(words[4]));
    const auto seconds = parse_cpu_time(words[3]);
    if (id->is_step) {
      const double tasks = std::max(read_leading_number(words[8]), 1.0);
      double& memory = sums[id->job].memory;
      memory = std::max(memory, parse_memory(words[7]) * tasks);
      continue;
    }
    // "CANCELLED by 1000"
    const std::string state = words[1].substr(0, words[1].find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
    if (classify_slurm_state(state) != SlurmKind::ended || !seconds || elapsed <= 0 || cpus < 1) {
      continue;
    }
    const double nodes = words[6].ends_with('n') ? read_leading_number(words[5]) : 1;
    Sums& sum = sums[id->job];
    sum.cpus = cpus;
    sum.percent = 100 * *seconds / elapsed / cpus;
    sum.requested = parse_memory(words[6]) * (words[6].ends_with('c') ? cpus : nodes);
  }
  std::map<std::string, JobUsage> used;
  for (const auto& [number, sum] : sums) {
    if (sum.cpus > 0 && (sum.percent > 0 || sum.memory > 0)) {
      used[number] = {round_to_int(sum.cpus), round_to_int(sum.percent), round_to_int(sum.memory),
                      round_to_int(sum.requested)};
    }
  }
  return used;
}

std::optional<JobUsage> parse_usage(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& word : split_words(text)) {
    const auto number = parse_number<int>(word);
    if (!number || *number < 0) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  if (numbers.size() != 4 || numbers[0] == 0) {
    return std::nullopt;
  }
  return JobUsage{numbers[0], numbers[1], numbers[2], numbers[3]};
}

void report_slurm_usage(SlurmTools& tools, std::span<const JobRecord> jobs,
                        std::span<wire::JobReport*> reports) {
  constexpr auto lag = std::chrono::seconds(120);
  std::map<std::size_t, std::string> missing;  // Slurm numbers of jobs without a note, by index
  std::set<std::string> numbers;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (const auto note = read_job_line(jobs[i].folder / "slurm.used")) {
      reports[i]->usage_asked = true;
      reports[i]->usage = parse_usage(*note);
      continue;
    }
    missing[i] = read_slurm_number(jobs[i].folder);
    if (!missing[i].empty()) {
      numbers.insert(missing[i]);
    }
  }
  const Accounts accounts = ask_accounts(tools, numbers);
  const wire::Moment now = read_wall_clock();
  for (const auto& [i, number] : missing) {
    const auto used = accounts.used.find(number);
    const wire::Moment ended_at = jobs[i].end ? jobs[i].end->at.value_or(wire::Moment(0)) : wire::Moment(0);
    if (used != accounts.used.end()) {
      reports[i]->usage = used->second;
    } else if (accounts.may_come && now - ended_at <= lag) {
      continue;
    }
    reports[i]->usage_asked = true;
    put_slurm_note(jobs[i], "used", reports[i]->usage ? to_text(*reports[i]->usage) : "-");
  }
}

}  // namespace remote::agent
