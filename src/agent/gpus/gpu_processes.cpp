#include "agent/gpus/gpu_processes.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/users.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The job id in the process's REMOTE_JOB_ID; "" if it has none.
std::string read_job_variable(const Host& host, int pid) {
  constexpr std::size_t most_bytes = std::size_t{8} << 20U;
  constexpr std::string_view name = "REMOTE_JOB_ID=";
  const std::string text = read_file(find_process_folder(host, pid) / "environ", most_bytes).value_or("");
  for (std::string& entry : split(text, '\0')) {
    if (entry.starts_with(name)) {
      entry.erase(0, name.size());
      if (entry.size() == 32 && entry.find_first_not_of("0123456789abcdef") == std::string::npos) {
        return entry;
      }
    }
  }
  return "";
}

int read_parent(const Host& host, int pid) {
  for (const std::string& line : read_lines(find_process_folder(host, pid) / "status")) {
    if (line.starts_with("PPid:")) {
      return parse_number<int>(trim(std::string_view(line).substr(5))).value_or(0);
    }
  }
  return 0;
}

// Returns the job of the process or of one of its ancestors. Only this user's processes count, because
// another user can give a process any variable.
std::string find_job(const Host& host, int pid) {
  for (int steps = 16; steps > 0 && pid > 1; --steps) {
    struct stat info {};
    if (::stat((find_process_folder(host, pid) / "environ").c_str(), &info) != 0 ||
        info.st_uid != ::geteuid()) {
      return "";
    }
    std::string job = read_job_variable(host, pid);
    if (!job.empty()) {
      return job;
    }
    pid = read_parent(host, pid);
  }
  return "";
}

std::string read_name(const Host& host, int pid) {
  const std::string line = read_first_line(find_process_folder(host, pid) / "comm");
  const bool has_control = std::ranges::any_of(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return has_control ? "" : wire::to_line(trim(line), 64);
}

// Sets only the pid if the process cannot be seen, for example because it is in another PID namespace.
GpuProcess read_process(const Host& host, int pid, UserNames& users) {
  GpuProcess process{.pid = pid, .name = {}};
  struct stat info {};
  if (::stat(find_process_folder(host, pid).c_str(), &info) != 0) {
    return process;
  }
  process.user = users.find(info.st_uid);
  process.own = info.st_uid == ::geteuid();
  process.job = process.own ? find_job(host, pid) : "";
  if (const std::optional<Process> seen = agent::read_process(host, pid)) {
    process.age = std::chrono::floor<std::chrono::seconds>(find_age(seen->id));
  }
  process.name = read_name(host, pid);
  return process;
}

}  // namespace

void identify_processes(const Host& host, std::vector<Gpu>& gpus) {
  UserNames users(host);
  std::map<int, GpuProcess> known;
  for (Gpu& gpu : gpus) {
    for (GpuProcess& process : gpu.processes) {
      auto found = known.find(process.pid);
      if (found == known.end()) {
        found = known.emplace(process.pid, read_process(host, process.pid, users)).first;
      }
      GpuProcess identified = found->second;
      identified.memory = process.memory;
      if (!process.name.empty()) {
        identified.name = process.name;
      }
      process = std::move(identified);
    }
  }
}

}  // namespace remote::agent
