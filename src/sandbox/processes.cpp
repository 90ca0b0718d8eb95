#include "sandbox/processes.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::sandbox {
namespace {

#ifdef __linux__

// A process may exit while it is examined; then opening or reading its files fails.
std::string read_proc(const std::string& path) {
  try {
    return read_file_if_there(path).value_or("");
  } catch (const Error&) {
    return {};
  }
}

const std::string& boot_id() {
  static const std::string id(trim(read_proc("/proc/sys/kernel/random/boot_id")));
  return id;
}

bool has_entry(std::string_view block, std::string_view entry) {
  const auto entries = split(block, '\0');
  return std::find(entries.begin(), entries.end(), entry) != entries.end();
}

std::optional<Process> read_process(pid_t pid, std::string_view mark) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string stat = read_proc(folder + "/stat");
  // "PID (name) S PPID …": the name may contain spaces and parentheses. The start time is field 22.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  const auto fields = split_words(std::string_view(stat).substr(name_end + 1));
  if (fields.size() < 20) {
    return std::nullopt;
  }
  Process process;
  process.pid = pid;
  process.parent = parse_number<pid_t>(fields[1]).value_or(0);
  process.zombie = fields[0] == "Z" || fields[0] == "X";
  process.start = boot_id() + ":" + fields[19];
  process.command = read_proc(folder + "/cmdline");
  process.command.erase(process.command.find_last_not_of('\0') + 1);
  std::replace(process.command.begin(), process.command.end(), '\0', ' ');
  process.marked = !mark.empty() && has_entry(read_proc(folder + "/environ"), mark);
  return process;
}

#endif

void send(const Process& process, int signal) {
  // Check again just before the signal, because the pid may have been reused since the listing.
  const auto now = find_process(process.pid);
  if (process.pid > 1 && now && now->start == process.start) {
    ::kill(process.pid, signal);
  }
}

std::string describe(const std::vector<Process>& processes) {
  std::vector<std::string> texts;
  for (const Process& process : processes) {
    texts.push_back(std::to_string(process.pid) + " (" + process.command.substr(0, 60) + ")");
  }
  return join(texts, ", ");
}

}  // namespace

#ifdef __linux__

std::vector<Process> list_processes(std::string_view mark) {
  std::vector<Process> result;
  for (const std::filesystem::path& entry : entries_of("/proc")) {
    if (const auto pid = parse_number<pid_t>(entry.filename().string())) {
      if (auto process = read_process(*pid, mark)) {
        result.push_back(std::move(*process));
      }
    }
  }
  return result;
}

std::optional<Process> find_process(pid_t pid) {
  auto process = read_process(pid, {});
  return process && !process->zombie ? process : std::nullopt;
}

#else

static std::vector<Process> run_ps(std::vector<std::string> which) {
  which.insert(which.begin(), "ps");
  which.insert(which.end(), {"-o", "pid=,ppid=,stat=,lstart=,command="});
  return parse_ps(run_subprocess({.argv = std::move(which), .set_env = {{"LC_ALL", "C"}}}).out);
}

std::vector<Process> list_processes(std::string_view) {
  return run_ps({"-ax"});
}

std::optional<Process> find_process(pid_t pid) {
  const auto found = run_ps({"-p", std::to_string(pid)});
  return !found.empty() && !found[0].zombie ? std::optional(found[0]) : std::nullopt;
}

#endif

std::vector<Process> parse_ps(std::string_view text) {
  std::vector<Process> result;
  for (const std::string& line : split(text, '\n')) {
    // PID, PPID, state, start ("Sat Nov 21 10:25:39 2026") and the command line.
    const std::vector<std::string> words = split_words(line);
    const auto pid = words.size() < 8 ? std::nullopt : parse_number<pid_t>(words[0]);
    const auto parent = pid ? parse_number<pid_t>(words[1]) : std::nullopt;
    if (!parent) {
      continue;
    }
    Process process;
    process.pid = *pid;
    process.parent = *parent;
    process.zombie = words[2].starts_with('Z');
    process.start = join({words.begin() + 3, words.begin() + 8}, " ");
    process.command = join({words.begin() + 8, words.end()}, " ");
    result.push_back(std::move(process));
  }
  return result;
}

std::vector<Process> with_descendants(const std::vector<Process>& all, const std::vector<pid_t>& roots) {
  std::set<pid_t> taken(roots.begin(), roots.end());
  for (bool grew = true; grew;) {
    grew = false;
    for (const Process& process : all) {
      grew = (taken.contains(process.parent) && taken.insert(process.pid).second) || grew;
    }
  }
  std::vector<Process> result = all;
  std::erase_if(result, [&](const Process& process) { return !taken.contains(process.pid); });
  return result;
}

void end_processes(const std::function<std::vector<Process>()>& find, std::chrono::milliseconds grace) {
  using Clock = std::chrono::steady_clock;
  const auto kill_from = Clock::now() + grace;
  const auto give_up = kill_from + std::chrono::seconds(10);
  std::set<std::pair<pid_t, std::string>> asked;  // processes that have received TERM
  auto pause = std::chrono::milliseconds(2);
  for (;;) {
    const std::vector<Process> left = find();
    if (left.empty()) {
      return;
    }
    const bool force = Clock::now() >= kill_from;
    for (const Process& process : left) {
      if (force) {
        send(process, SIGKILL);
      } else if (asked.emplace(process.pid, process.start).second) {
        send(process, SIGTERM);
        send(process, SIGCONT);  // a stopped process handles TERM only after it continues
      }
    }
    if (Clock::now() >= give_up) {
      throw Error("cannot end all processes", "still running: " + describe(left),
                  "try again; processes of another user must be stopped by that user");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

}  // namespace remote::sandbox
