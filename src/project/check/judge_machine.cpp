// Findings about a server's hardware and limits.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "rules/usable.hpp"

namespace remote::project {
namespace {

constexpr std::uint64_t half_gib = std::uint64_t{1} << 29U;

std::string cpu_words(const ServerFacts& facts) {
  std::string words = facts.cpu.empty() ? "" : facts.cpu + ", ";
  if (facts.sockets > 0) {
    words += counted(static_cast<std::size_t>(facts.sockets), "socket") + ", ";
  }
  if (facts.cores > 0) {
    words += counted(static_cast<std::size_t>(facts.cores), "core") + ", ";
  }
  words += counted(static_cast<std::size_t>(facts.threads), "thread");
  if (facts.usable_threads > 0 && facts.usable_threads < facts.threads) {
    words += fmt::format(", {} usable by this user", facts.usable_threads);
  }
  if (facts.cpu_limit && *facts.cpu_limit < facts.threads) {
    words += fmt::format(", limited to {:g} by its control group", *facts.cpu_limit);
  }
  if (facts.numa_nodes > 1) {
    words += fmt::format(", {} NUMA nodes", facts.numa_nodes);
  }
  return words;
}

Finding judge_memory(const ServerFacts& facts) {
  if (facts.memory == 0) {
    return {"memory", CheckStatus::skip, "could not be checked", {}};
  }
  const UsableMemory usable = rules::count_memory(facts);
  std::string detail =
      fmt::format("{} of {} are available", size_text(facts.memory_available), size_text(facts.memory));
  if (usable.is_limited) {
    detail += fmt::format("; its control group limits it to {}", size_text(usable.total));
  }
  // torch alone uses a few hundred MiB per process.
  if (usable.available < half_gib && usable.available < usable.total / 10) {
    return {"memory", CheckStatus::warn, detail,
            Fix{Fix::Where::server, "ps -eo user,pid,rss,args --sort=-rss | head -20"}};
  }
  return {"memory", CheckStatus::ok, detail, {}};
}

Finding judge_load(const ServerFacts& facts) {
  if (facts.load.size() != 3) {
    return {"load", CheckStatus::skip, "could not be checked", {}};
  }
  const int cpus = std::max(1, facts.usable_threads > 0 ? facts.usable_threads : facts.threads);
  const std::string detail = fmt::format("{:.1f} over five minutes, with {}", facts.load[1],
                                         counted(static_cast<std::size_t>(cpus), "thread"));
  // All processors are busy with other work. Uses the 5-minute average, because short peaks are harmless.
  if (facts.load[1] > 2.0 * cpus + 4) {
    return {"load", CheckStatus::warn, detail + ": others compute there",
            Fix{Fix::Where::server, "ps -eo user,pid,pcpu,args --sort=-pcpu | head -20"}};
  }
  return {"load", CheckStatus::ok, detail, {}};
}

// Memory that a network card writes to must be locked.
constexpr std::uint64_t memlock_of_rdma = 2 * half_gib;

constexpr std::uint64_t large_file = std::uint64_t{64} << 30U;  // a checkpoint

Finding judge_limits(const ServerFacts& facts) {
  const auto limit = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto found = facts.limits.find(name);
    return found == facts.limits.end() ? std::nullopt : found->second;
  };
  std::vector<std::string> bad;
  std::string lines;
  // 1024 is the usual limit; every worker of a DataLoader and every connection of gloo uses several files.
  if (const auto files = limit("nofile"); files && *files < 1024) {
    bad.push_back(fmt::format("a process may open {} files", *files));
    lines += fmt::format("{} - nofile 65536\\n", facts.user);
  }
  // A rank has dozens of threads.
  if (const auto processes = limit("nproc"); processes && *processes < 1024) {
    bad.push_back(fmt::format("this user is limited to {} processes and threads", *processes));
    lines += fmt::format("{} - nproc 65536\\n", facts.user);
  }
  if (const auto seconds = limit("cpu")) {
    bad.push_back(fmt::format("a process is stopped after {} s of processor time (ulimit -t)", *seconds));
    lines += fmt::format("{} - cpu unlimited\\n", facts.user);
  }
  // CUDA reserves more address space than there is memory.
  if (const auto bytes = limit("as")) {
    bad.push_back(fmt::format("a process has only {} of address space (ulimit -v)", size_text(*bytes)));
    lines += fmt::format("{} - as unlimited\\n", facts.user);
  }
  if (const auto bytes = limit("fsize"); bytes && *bytes < large_file) {
    bad.push_back(fmt::format("a file may have at most {} (ulimit -f)", size_text(*bytes)));
    lines += fmt::format("{} - fsize unlimited\\n", facts.user);
  }
  const bool rdma = std::ranges::any_of(facts.infiniband, &InfinibandPort::active);
  if (const auto locked = limit("memlock"); rdma && locked && *locked < memlock_of_rdma) {
    bad.push_back(fmt::format("a process may lock {} of memory, but RDMA needs more", size_text(*locked)));
    lines += fmt::format("{} - memlock unlimited\\n", facts.user);
  }
  if (!bad.empty()) {
    return {"limits", CheckStatus::warn, join(bad, "; "),
            Fix{Fix::Where::server_as_root,
                fmt::format("printf {} >/etc/security/limits.d/remote.conf", shell_quote(lines))}};
  }
  const auto files = limit("nofile");
  return {"limits",
          CheckStatus::ok,
          "open files: " + (files ? std::to_string(*files) : std::string("unlimited")),
          {}};
}

void judge_infiniband(const ServerFacts& facts, std::vector<Finding>& findings) {
  if (facts.infiniband.empty()) {
    return;
  }
  Finding finding{"infiniband", CheckStatus::ok, "", {}};
  for (const InfinibandPort& port : facts.infiniband) {
    finding.detail += fmt::format("{}{}:{} {}{}", finding.detail.empty() ? "" : ", ", port.device, port.port,
                                  port.state, port.rate.empty() ? "" : " " + port.rate);
  }
  // A port without a cable is common, but a server without any active port has lost its network.
  if (std::ranges::none_of(facts.infiniband, &InfinibandPort::active)) {
    finding.status = CheckStatus::warn;
    finding.detail += ": no port is active, so NCCL uses TCP";
    finding.fix = Fix{Fix::Where::server, "ibstat || rdma link"};
  }
  findings.push_back(std::move(finding));
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return value < 10 && unit > 0 ? fmt::format("{:.1f} {}", value, units.at(unit))
                                : fmt::format("{:.0f} {}", value, units.at(unit));
}

void judge_machine(const ServerFacts& facts, std::vector<Finding>& findings) {
  findings.push_back({"system",
                      CheckStatus::ok,
                      fmt::format("{}, Linux {}", facts.os.empty() ? "unknown" : facts.os, facts.kernel),
                      {}});
  findings.push_back({"cpu", CheckStatus::ok, cpu_words(facts), {}});
  findings.push_back(judge_memory(facts));
  findings.push_back(judge_load(facts));
  findings.push_back(judge_limits(facts));
  judge_infiniband(facts, findings);
}

}  // namespace remote::project
