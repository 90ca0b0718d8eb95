#include "agent/stacks/python_processes.hpp"

#include <algorithm>
#include <string_view>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_maps = std::size_t{16} << 20U;

// Searches for names like "libpython3.11.so".
bool names_python_library(std::string_view maps) {
  constexpr std::string_view name = "libpython";
  for (std::size_t at = maps.find(name); at != std::string_view::npos; at = maps.find(name, at + 1)) {
    const std::size_t end = maps.find_first_not_of("0123456789.", at + name.size());
    if (end != std::string_view::npos && maps[end - 1] == '.' && maps.substr(end).starts_with("so")) {
      return true;
    }
  }
  return false;
}

bool is_python(const Host& host, int pid) {
  const Path folder = find_process_folder(host, pid);
  const std::string program = Path(read_link(folder / "exe")).filename();
  return program.starts_with("python") || program.starts_with("pypy") ||
         (!program.empty() && names_python_library(read_file(folder / "maps", most_maps).value_or("")));
}

std::optional<int> find_rank(const Host& host, int pid) {
  const auto rank = parse_number<int>(find_variable(host, pid, "RANK").value_or(""));
  return rank && *rank >= 0 && *rank <= wire::rank_limit.most ? rank : std::nullopt;
}

}  // namespace

std::vector<PythonProcess> find_python_processes(const Host& host, const std::map<int, std::string>& jobs,
                                                 const std::string& id) {
  const std::string node = host.variable("SLURMD_NODENAME");
  std::vector<PythonProcess> pythons;
  for (const auto& [pid, job] : jobs) {
    if (job == id && is_python(host, pid) &&
        (node.empty() || find_variable(host, pid, "SLURMD_NODENAME") == node)) {
      pythons.push_back({pid, find_rank(host, pid)});
    }
  }
  std::vector<PythonProcess> topmost;
  for (const PythonProcess& python : pythons) {
    const auto process = read_process(host, python.pid);
    const auto is_parent = [&](const PythonProcess& other) {
      return other.pid == process->parent && other.rank == python.rank;
    };
    if (process && std::ranges::none_of(pythons, is_parent)) {
      topmost.push_back(python);
    }
  }
  return topmost;
}

}  // namespace remote::agent
