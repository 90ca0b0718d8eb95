#include "agent/host/processes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The numeric names in a folder, sorted.
std::vector<int> list_numbers(const Path& folder) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const char* name = static_cast<const char*>(entry->d_name);
    if (std::isdigit(static_cast<unsigned char>(*name)) != 0) {
      if (const auto number = parse_number<int>(name)) {
        numbers.push_back(*number);
      }
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

// The job id from REMOTE_JOB_ID in an environment block; "" if it is missing.
std::string find_job_variable(std::string_view environment) {
  constexpr std::string_view name = "REMOTE_JOB_ID=";
  for (std::size_t at = environment.find(name); at != std::string_view::npos;
       at = environment.find(name, at + 1)) {
    const std::string_view value = environment.substr(at + name.size());
    const std::string_view whole = value.substr(0, value.find('\0'));
    if ((at == 0 || environment[at - 1] == '\0') && wire::is_id(whole)) {
      return std::string(whole);
    }
  }
  return "";
}

// Counts the threads of this user's processes, up to `most`.
int count_own_threads(const Host& host, int most) {
  int count = 0;
  for (const int pid : list_processes(host)) {
    if (find_owner(host, pid) != ::geteuid()) {
      continue;
    }
    for (const int thread : list_numbers(find_process_folder(host, pid) / "task")) {
      const auto info = look_at(find_process_folder(host, pid) / text::format("task/{}", thread));
      if (info && info->st_uid == ::geteuid() && ++count >= most) {
        return count;
      }
    }
  }
  return count;
}

// Several processes run at once, so keep some in reserve.
constexpr int spare_processes = 8;

std::string check_login_limit(const Host& host) {
  constexpr std::string_view key = "Max processes";
  const std::string text = read_file(host.system("/proc/self/limits")).value_or("");
  const std::size_t at = text.find(key);
  if (at == std::string::npos) {
    return "";
  }
  const std::vector<std::string> words = split_words(text.substr(at + key.size(), 100));
  const auto limit = words.empty() ? std::nullopt : parse_number<int>(words.front());
  if (!limit) {  // "unlimited"
    return "";
  }
  // /proc/loadavg has the machine's number of threads: "0.20 0.18 0.12 1/80 11206".
  const std::vector<std::string> load = split_words(read_first_line(host.system("/proc/loadavg")));
  const std::vector<std::string> threads = split(load.size() > 3 ? load[3] : "", '/');
  const auto all = threads.size() == 2 ? parse_number<int>(threads[1]) : std::nullopt;
  if (all.value_or(*limit) < *limit - spare_processes ||
      count_own_threads(host, *limit - spare_processes) < *limit - spare_processes) {
    return "";
  }
  return text::format("the login's limit of {} processes (ulimit -u) is reached", *limit);
}

std::string check_group_limit(const Path& folder) {
  const auto limit = parse_number<std::int64_t>(read_first_line(folder / "pids.max"));
  const auto count = parse_number<std::int64_t>(read_first_line(folder / "pids.current"));
  return limit && count && *count + spare_processes >= *limit
             ? text::format("the limit of {} processes of its control group is reached", *limit)
             : "";
}

std::string check_group_limits(const Host& host) {
  for (const std::string& line : read_lines(host.system("/proc/self/cgroup"))) {
    // "0::/user.slice" in cgroup v2, or "7:pids:/user.slice" in cgroup v1.
    const std::size_t kinds = line.find(':');
    const std::size_t path = line.find(':', kinds == std::string::npos ? kinds : kinds + 1);
    if (path == std::string::npos) {
      continue;
    }
    const std::string kind = "," + line.substr(kinds + 1, path - kinds - 1) + ",";
    if (kind != ",," && kind.find(",pids,") == std::string::npos) {
      continue;
    }
    const Path top = host.system(kind == ",," ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids");
    // The limits of parent groups apply too.
    for (Path group = line.substr(path + 1); group.is_absolute(); group = group.parent_path()) {
      std::string reason = check_group_limit(top.string() + group.string());
      if (!reason.empty()) {
        return reason;
      }
      if (group == Path("/")) {
        break;
      }
    }
  }
  return "";
}

}  // namespace

std::optional<Process> parse_process(std::string_view text) {
  // The name in parentheses may contain blanks, parentheses and newlines.
  const std::size_t begin = text.find(" (");
  const std::size_t end = text.rfind(") ");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 2) {
    return std::nullopt;
  }
  const std::vector<std::string> words = split_words(text.substr(end + 2));
  constexpr std::size_t least = 31;
  constexpr std::uint64_t exiting_flag = 4;  // PF_EXITING, the same in all kernels
  if (words.size() < least || words[0].size() != 1) {
    return std::nullopt;
  }
  const auto pid = parse_number<int>(text.substr(0, begin));
  const auto parent = parse_number<int>(words[1]);
  const auto group = parse_number<int>(words[2]);
  const auto session = parse_number<int>(words[3]);
  const auto user_ticks = parse_number<std::uint64_t>(words[11]);
  const auto system_ticks = parse_number<std::uint64_t>(words[12]);
  const auto start = parse_number<std::uint64_t>(words[19]);
  if (!pid || !parent || !group || !session || !start || *pid <= 0) {
    return std::nullopt;
  }
  return Process{.id = {*pid, *start},
                 .parent = *parent,
                 .group = *group,
                 .session = *session,
                 .state = words[0][0],
                 .exits = (parse_number<std::uint64_t>(words[6]).value_or(0) & exiting_flag) != 0,
                 .ticks = user_ticks.value_or(0) + system_ticks.value_or(0),
                 .name = std::string(text.substr(begin + 2, end - begin - 2))};
}

Path find_process_folder(const Host& host, int pid) {
  return host.system(text::format("/proc/{}", pid));
}

std::optional<Process> read_process(const Host& host, int pid) {
  const Path path = find_process_folder(host, pid) / "stat";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());  // one call returns everything
  return count > 0 ? parse_process({buffer.data(), static_cast<std::size_t>(count)}) : std::nullopt;
}

bool is_alive(const Host& host, ProcessId id) {
  const auto process = id.pid > 0 ? read_process(host, id.pid) : std::nullopt;
  return process && process->id == id && !process->is_dead();
}

std::vector<int> list_processes(const Host& host) {
  return list_numbers(host.system("/proc"));
}

std::optional<std::vector<int>> list_children(const Host& host, int pid) {
  std::vector<int> children;
  bool is_told = false;
  const std::vector<int> threads = list_numbers(find_process_folder(host, pid) / "task");
  for (const int thread : threads) {
    const auto text = read_file(find_process_folder(host, pid) / text::format("task/{}/children", thread));
    is_told = is_told || text;
    for (const std::string& word : split_words(text.value_or(""))) {
      if (const auto child = parse_number<int>(word)) {
        children.push_back(*child);
      }
    }
  }
  return is_told || threads.empty() ? std::optional(std::move(children)) : std::nullopt;
}

std::optional<uid_t> find_owner(const Host& host, int pid) {
  const auto info = look_at(find_process_folder(host, pid));
  return info ? std::optional(info->st_uid) : std::nullopt;
}

std::optional<uid_t> find_real_user(const Host& host, int pid) {
  const std::string text = read_file(find_process_folder(host, pid) / "status").value_or("");
  // The name is on the first line; the kernel escapes newlines in it.
  const std::size_t at = text.find("\nUid:");
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::vector<std::string> words = split_words(text.substr(at + 5, 64));
  return words.empty() ? std::nullopt : parse_number<uid_t>(words.front());
}

bool send_signal(const Host& host, ProcessId id, int signal) {
  if (id.pid <= 1) {
    return false;
  }
  // These numbers are the same on all architectures.
  constexpr long pidfd_open = 434;
  constexpr long pidfd_send_signal = 424;
  const auto fd = static_cast<int>(::syscall(pidfd_open, id.pid, 0U));
  // The descriptor refers to the process that has this pid now, so check its identity.
  bool is_sent = false;
  if (is_alive(host, id)) {
    is_sent = fd >= 0 && ::syscall(pidfd_send_signal, fd, signal, nullptr, 0U) == 0;
    // Old kernels lack these calls, and a container may reject them with any error.
    if (!is_sent && (fd < 0 || errno != ESRCH)) {
      is_sent = ::kill(id.pid, signal) == 0;
    }
  }
  if (fd >= 0) {
    ::close(fd);
  }
  return is_sent;
}

namespace {

// Whether a process started within the last second and is not a kernel thread.
bool is_young(const Host& host, int pid) {
  const std::optional<Process> process = read_process(host, pid);
  if (!process || read_link(find_process_folder(host, pid) / "exe").empty()) {
    return false;
  }
  return find_age(process->id) < std::chrono::seconds(1);
}

// Waits a moment if the environment is empty: while a process executes a new program, which it does right
// after its start, its environment cannot be read.
std::string await_environment(const Host& host, int pid) {
  constexpr std::size_t most_bytes = std::size_t{8} << 20U;
  constexpr int most_tries = 50;
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
  const Path path = find_process_folder(host, pid) / "environ";
  std::string text = read_file(path, most_bytes).value_or("");
  for (int i = 0; i < most_tries && text.empty() && is_young(host, pid); ++i) {
    ::nanosleep(&moment, nullptr);
    text = read_file(path, most_bytes).value_or("");
  }
  return text;
}

}  // namespace

JobVariable read_job_variable(const Host& host, int pid, uid_t user) {
  const std::string environment = await_environment(host, pid);
  JobVariable variable{.job = find_job_variable(environment), .is_readable = !environment.empty()};
  // A setuid program is owned by root even if another user started it.
  if (!variable.job.empty() && user == 0 && find_real_user(host, pid) != user) {
    variable.job.clear();
  }
  return variable;
}

std::map<int, std::string> find_job_processes(const Host& host) {
  const uid_t user = ::geteuid();
  const pid_t self = ::getpid();
  std::map<int, std::string> jobs;
  for (const int pid : list_processes(host)) {
    if (pid == self || find_owner(host, pid) != user) {
      continue;
    }
    if (std::string job = read_job_variable(host, pid, user).job; !job.empty()) {
      jobs.emplace(pid, std::move(job));
    }
  }
  return jobs;
}

std::optional<std::string> find_variable(const Host& host, int pid, std::string_view name) {
  const std::string environment = read_file(find_process_folder(host, pid) / "environ").value_or("");
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('\0'));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) {
      return std::string(one.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return std::nullopt;
}

bool has_variable(const Host& host, int pid, std::string_view variable) {
  const std::size_t end = variable.find('=');
  return find_variable(host, pid, variable.substr(0, end)) == variable.substr(end + 1);
}

std::string read_boot_id(const Host& host) {
  std::string id = read_first_line(host.system("/proc/sys/kernel/random/boot_id"));
  return id.empty() ? "unknown" : id;
}

std::chrono::milliseconds read_wall_clock() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::chrono::milliseconds read_boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::milliseconds(static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000);
}

std::chrono::milliseconds find_age(ProcessId id) {
  constexpr std::uint64_t most_seconds = std::uint64_t{1} << 40U;
  const std::uint64_t ticks = std::max<std::uint64_t>(::getauxval(AT_CLKTCK), 1);  // per second
  const std::uint64_t start =
      std::min(id.start / ticks, most_seconds) * 1000 + id.start % ticks * 1000 / ticks;
  return std::max(read_boot_clock() - std::chrono::milliseconds(start), std::chrono::milliseconds(0));
}

std::string find_process_limit(const Host& host) {
  std::string reason = check_login_limit(host);
  return reason.empty() ? check_group_limits(host) : reason;
}

}  // namespace remote::agent
