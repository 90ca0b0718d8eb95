#include "agent/stacks/launch_sample.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "agent/facts/cgroups.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/stacks/python_processes.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_samples = 512;

std::optional<std::uint64_t> read_counter(const Path& file, std::string_view key) {
  for (const std::string& line : read_lines(file)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() == 2 && words[0] == key) {
      return parse_number<std::uint64_t>(words[1]);
    }
  }
  return std::nullopt;
}

// These threads of torch answer the other ranks' requests every second, even while the rank waits.
bool is_answering_thread(std::string_view name) {
  return name.starts_with("pt_tcpstore") || name.starts_with("pt_nccl_");
}

std::optional<std::uint64_t> read_written(const Path& process) {
  constexpr std::string_view key = "wchar:";
  std::optional<std::uint64_t> written = read_counter(process / "io", key);
  for (const std::string& thread : list_names(process / "task")) {
    const Path task = process / "task" / thread;
    if (written && is_answering_thread(read_first_line(task / "comm"))) {
      *written -= std::min(*written, read_counter(task / "io", key).value_or(0));
    }
  }
  return written;
}

std::uint64_t read_delay(const Path& process) {
  std::uint64_t delay = 0;
  for (const std::string& thread : list_names(process / "task")) {
    const std::vector<std::string> words =
        split_words(read_first_line(process / "task" / thread / "schedstat"));
    delay += words.size() > 1 ? parse_number<std::uint64_t>(words[1]).value_or(0) : 0;
  }
  return delay;
}

// Returns how long the nearest control group with a limit was throttled, in microseconds.
std::optional<std::uint64_t> read_group_throttling(const Path& top, std::string path) {
  for (;;) {
    const Path folder = top.string() + path;
    std::string quota = read_first_line(folder / "cpu.max");
    quota = quota.empty() ? read_first_line(folder / "cpu.cfs_quota_us") : quota.substr(0, quota.find(' '));
    if (!quota.empty() && quota.find_first_not_of("0123456789") == std::string::npos) {
      const auto microseconds = read_counter(folder / "cpu.stat", "throttled_usec");
      const auto nanoseconds = read_counter(folder / "cpu.stat", "throttled_time");
      return microseconds ? microseconds : nanoseconds ? std::optional(*nanoseconds / 1000) : std::nullopt;
    }
    const std::size_t last = path.rfind('/');
    if (last == std::string::npos || last + 1 == path.size()) {
      return std::nullopt;
    }
    path.resize(last);
  }
}

std::optional<std::uint64_t> read_throttling(const Host& host, const Path& process) {
  std::optional<std::uint64_t> found;
  for (const CgroupPlace& place : read_cgroups(process / "cgroup")) {
    Path top = host.system("/sys/fs/cgroup");
    if (place.is_new()) {
      top = exists(top / "cgroup.controllers") ? top : top / "unified";
    } else if (place.has("cpu")) {
      top = top / join(place.controllers, ",");
    } else {
      continue;
    }
    if (const auto time = read_group_throttling(top, place.path)) {
      found = time;
    }
  }
  return found;
}

// The descriptor in a line "0 0x1 0x7f…" of /proc/PID/syscall, if the process is in write(2).
std::optional<int> find_written_descriptor(const Path& process) {
  const std::vector<std::string> words = split_words(read_first_line(process / "syscall"));
  constexpr std::size_t most_digits = 5;  // "0xfff"
  if (words.size() < 2 || words[1].size() > most_digits || !words[1].starts_with("0x")) {
    return std::nullopt;
  }
  int number = 0;
  const char* end = words[1].data() + words[1].size();
  const auto [rest, error] = std::from_chars(words[1].data() + 2, end, number, 16);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

// Checks /proc/PID/fdinfo/FD: "flags:\t0100000", in octal.
bool is_open_for_reading(const Path& process, const std::string& descriptor) {
  for (const std::string& line : read_lines(process / "fdinfo" / descriptor)) {
    if (line.starts_with("flags:")) {
      return line.ends_with('0');
    }
  }
  return false;
}

class Sampler {
 public:
  Sampler(const Host& host, bool with_pipes)
      : host_(host), with_pipes_(with_pipes), jobs_(find_job_processes(host)) {
    sample_.at = read_boot_clock();
  }

  wire::LaunchSample take(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      for (const PythonProcess& python : find_python_processes(host_, jobs_, id)) {
        const Path folder = find_process_folder(host_, python.pid);
        sample_.ranks.push_back({.id = id,
                                 .pid = python.pid,
                                 .rank = python.rank,
                                 .delay_ns = read_delay(folder),
                                 .throttled_us = read_throttling(host_, folder)});
      }
      for (const auto& [pid, job] : jobs_) {
        if (job == id) {
          add_process(pid);
        }
      }
    }
    return std::move(sample_);
  }

 private:
  void add_process(int pid) {
    const auto process = read_process(host_, pid);
    if (!process || sample_.processes.size() == most_samples) {
      return;
    }
    const Path folder = find_process_folder(host_, pid);
    wire::ProcessSample sample{.pid = pid,
                               .parent = process->parent,
                               .state = std::string(1, process->state),
                               .ticks = process->ticks,
                               .written = read_written(folder)};
    const std::string function = read_first_line(folder / "wchan");
    if (function != "0" && wire::is_word(function, "._")) {
      sample.kernel = function;
    }
    if (with_pipes_ && function.ends_with("pipe_write")) {
      find_pipe(folder, sample);
    }
    sample_.processes.push_back(std::move(sample));
  }

  // Reads only links, because accessing another open file may block.
  void find_pipe(const Path& folder, wire::ProcessSample& sample) const {
    sample.pipe_fd = find_written_descriptor(folder);
    const std::string pipe =
        sample.pipe_fd ? read_link(folder / "fd" / text::format("{}", *sample.pipe_fd)) : "";
    if (pipe.empty()) {
      return;
    }
    for (const auto& [pid, job] : jobs_) {
      const Path other = find_process_folder(host_, pid);
      for (const std::string& name : list_names(other / "fd")) {
        if (read_link(other / "fd" / name) == pipe && is_open_for_reading(other, name)) {
          sample.pipe_reader = pid;
          return;
        }
      }
    }
  }

  const Host& host_;
  bool with_pipes_;
  std::map<int, std::string> jobs_;
  wire::LaunchSample sample_{};
};

}  // namespace

wire::LaunchSample take_launch_sample(const Host& host, const std::vector<std::string>& ids,
                                      bool with_pipes) {
  return Sampler(host, with_pipes).take(ids);
}

}  // namespace remote::agent
