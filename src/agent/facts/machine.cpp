#include "agent/facts/machine.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/facts/cgroups.hpp"
#include "agent/facts/infiniband.hpp"
#include "agent/facts/machine_digest.hpp"
#include "agent/host/files.hpp"
#include "base/decimal.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::array known_programs{"rsync", "docker", "podman", "apptainer", "sbatch", "mpirun", "iperf3"};

// The value of a line "NAME: VALUE" or "NAME=VALUE".
std::string_view value_of_line(std::string_view line) {
  const std::size_t end = line.find_first_of(":=");
  return trim(end == std::string_view::npos ? line : line.substr(end + 1));
}

std::string read_system_text(const Host& host, std::string_view path) {
  return wire::to_line(trim(read_first_line(host.system(path))));
}

int clamp_count(std::uint64_t number) {
  return static_cast<int>(std::min<std::uint64_t>(number, wire::max_count));
}

// Counts the numbers in a list such as "0-3,8".
int count_numbers(std::string_view list) {
  std::uint64_t count = 0;
  for (const std::string& part : split(list, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_number<std::uint32_t>(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : parse_number<std::uint32_t>(std::string_view(part).substr(dash + 1));
    if (first && last && *first <= *last) {
      count += std::uint64_t{*last} - *first + 1;
    }
  }
  return clamp_count(count);
}

void read_os(const Host& host, ServerFacts& facts) {
  facts.host = read_system_text(host, "/proc/sys/kernel/hostname");
  facts.kernel = read_system_text(host, "/proc/sys/kernel/osrelease");
  for (const std::string& line : read_lines(host.system("/etc/os-release"))) {
    if (line.starts_with("PRETTY_NAME=")) {
      std::string name(value_of_line(line));
      std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
      facts.os = wire::to_line(trim(name));
    }
  }
}

// On ARM, cpuinfo has neither sockets nor cores, and often no name.
void read_processors(const Host& host, ServerFacts& facts) {
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  std::string socket;
  std::uint64_t threads = 0;
  for (const std::string& line : read_lines(host.system("/proc/cpuinfo"))) {
    if (line.starts_with("processor")) {
      ++threads;
    } else if (facts.cpu.empty() && line.starts_with("model name")) {
      facts.cpu = wire::to_line(value_of_line(line));
    } else if (line.starts_with("physical id")) {
      socket = value_of_line(line);
      sockets.insert(socket);
    } else if (line.starts_with("core id")) {
      cores.emplace(socket, value_of_line(line));
    }
  }
  facts.sockets = clamp_count(sockets.size());
  facts.cores = clamp_count(cores.size());
  facts.threads = clamp_count(threads);
  facts.numa_nodes = count_numbers(trim(read_first_line(host.system("/sys/devices/system/node/online"))));
}

void read_status(const Host& host, ServerFacts& facts) {
  for (const std::string& line : read_lines(host.system("/proc/self/status"))) {
    if (line.starts_with("Cpus_allowed_list:")) {
      facts.usable_threads = count_numbers(value_of_line(line));
    } else if (line.starts_with("Uid:")) {
      const std::string_view ids = value_of_line(line);
      facts.uid = parse_number<std::uint32_t>(ids.substr(0, ids.find('\t')));
    }
  }
}

void read_limits(const Host& host, ServerFacts& facts) {
  constexpr std::size_t soft_column = 26;
  constexpr std::array<std::pair<std::string_view, const char*>, 7> names{{{"Max cpu time ", "cpu"},
                                                                           {"Max address space ", "as"},
                                                                           {"Max file size ", "fsize"},
                                                                           {"Max open files ", "nofile"},
                                                                           {"Max processes ", "nproc"},
                                                                           {"Max locked memory ", "memlock"},
                                                                           {"Max core file size ", "core"}}};
  for (const std::string& line : read_lines(host.system("/proc/self/limits"))) {
    const auto* const found =
        std::ranges::find_if(names, [&](const auto& name) { return line.starts_with(name.first); });
    if (found == names.end() || line.size() <= soft_column) {
      continue;
    }
    const std::string_view rest = std::string_view(line).substr(soft_column);
    const std::string_view soft = rest.substr(0, rest.find(' '));
    const auto limit = parse_number<std::uint64_t>(soft);
    if (soft == "unlimited" || (limit && *limit >= wire::max_bytes)) {
      facts.limits[found->second] = std::nullopt;
    } else if (limit) {
      facts.limits[found->second] = limit;
    }
  }
}

void read_login(const Host& host, ServerFacts& facts) {
  std::string user = host.variable("LOGNAME");
  user = user.empty() ? host.variable("USER") : user;
  user = user.empty() ? "unknown" : user;
  facts.user = wire::to_line(user);
  facts.linger = exists(host.system("/var/lib/systemd/linger") / user);
  for (const char* program : known_programs) {
    if (!host.find_program(program).empty()) {
      facts.programs.insert(program);
    }
  }
  for (const char* const folder : {"/usr/local/bin", "/usr/bin", "/bin"}) {
    const Path program = host.system(folder) / "rsync";
    if (!facts.programs.contains("rsync") && facts.hidden_rsync.empty() && is_program(program)) {
      facts.hidden_rsync = text::format("{}/rsync", folder);
    }
  }
}

void read_load_averages(const Host& host, ServerFacts& facts) {
  const std::vector<std::string> words = split_words(read_first_line(host.system("/proc/loadavg")));
  std::vector<double> load;
  for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 3); ++i) {
    const auto value = parse_decimal(words[i]);
    if (value && *value >= 0 && *value <= 1e6) {
      load.push_back(*value);
    }
  }
  if (load.size() == 3) {
    facts.load = load;
  }
}

void read_memory(const Host& host, ServerFacts& facts) {
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
  for (const std::string& line : read_lines(host.system("/proc/meminfo"))) {
    const auto read = [&](std::string_view name, std::optional<std::uint64_t>& kibibytes) {
      if (line.starts_with(name)) {
        const std::string_view value = value_of_line(line);
        kibibytes = parse_number<std::uint64_t>(value.substr(0, value.find(' ')));
      }
    };
    read("MemTotal:", total);
    read("MemAvailable:", available);
    if (available) {
      break;
    }
  }
  // Kernels before 3.14 do not have MemAvailable.
  if (total && available && *total <= wire::max_bytes / 1024 && *available <= wire::max_bytes / 1024) {
    facts.memory = *total * 1024;
    facts.memory_available = *available * 1024;
  }
}

// "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …".
wire::Ticks parse_ticks(const std::string& line) {
  constexpr std::size_t idle = 4;
  constexpr std::size_t wait = 5;
  constexpr std::size_t steal = 8;
  const std::vector<std::string> words = split_words(line);
  wire::Ticks ticks;
  for (std::size_t i = 1; i < words.size() && i <= steal; ++i) {
    const std::uint64_t value = parse_number<std::uint64_t>(words[i]).value_or(0);
    ticks.all += value;
    ticks.busy += i == idle || i == wait ? 0 : value;
  }
  // Some kernels report negative numbers, which wrap around.
  return std::max(ticks.all, ticks.busy) > wire::max_bytes ? wire::Ticks{} : ticks;
}

}  // namespace

void read_machine(const Host& host, ServerFacts& facts) {
  facts.machine = read_machine_digest(host);
  facts.image = read_image_digest(host);
  read_os(host, facts);
  read_processors(host, facts);
  read_status(host, facts);
  read_limits(host, facts);
  const CgroupLimits limits = read_cgroup_limits(host);
  facts.memory_limit = limits.memory;
  facts.cpu_limit = limits.cpus;
  facts.driver = read_system_text(host, "/sys/module/nvidia/version");
  read_login(host, facts);
  facts.infiniband = read_infiniband(host);
}

void read_load(const Host& host, wire::FactsReply& reply) {
  read_load_averages(host, reply.facts);
  std::uint64_t cpus = 0;
  for (const std::string& line : read_lines(host.system("/proc/stat"))) {
    if (line.starts_with("cpu ")) {
      reply.ticks = parse_ticks(line);
    } else if (line.starts_with("cpu")) {
      ++cpus;
    } else {
      break;
    }
  }
  reply.cpus_online = std::max(1, clamp_count(cpus));
  read_memory(host, reply.facts);
}

}  // namespace remote::agent
