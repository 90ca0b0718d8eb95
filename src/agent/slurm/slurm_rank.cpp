#include "agent/slurm/slurm_rank.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "agent/facts/kernel_route.hpp"
#include "agent/facts/network.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/record.hpp"
#include "agent/slurm/job_command.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t last_bytes = 65536;
constexpr std::size_t last_lines_of_rank = 30;

// Sets the network interface toward the first node for gloo and NCCL. If host names cannot be resolved, gloo
// would use the loopback.
void set_interface(const Host& host) {
  const std::string first = host.variable("MASTER_ADDR");
  const std::optional<IpAddress> address = IpAddress::parse(first);
  if (!address) {
    return;
  }
  std::string interface;
  if (host.variable("SLURM_JOB_NUM_NODES") == "1" || first.starts_with("127.")) {
    const auto route = ask_kernel(*address);
    interface = route ? route->interface : "";
  } else {
    // On the first node itself, also use the interface with its address, not the loopback.
    interface = find_route(*address).interface.value_or("");
    interface = interface == "lo" ? "" : interface;
  }
  if (!interface.empty()) {
    ::setenv(interface_variable, interface.c_str(), 1);
  }
}

void set_variables(const Host& host, const SlurmRank& rank) {
  const auto set = [&](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  const std::string node = host.variable("SLURM_NODEID");
  set("NODE_RANK", node);
  set("GROUP_RANK", node);
  if (rank.is_agent) {
    return;
  }
  for (const char* name : {"RANK", "ROLE_RANK"}) {
    set(name, host.variable("SLURM_PROCID"));
  }
  for (const char* name : {"WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
    set(name, host.variable("SLURM_NTASKS"));
  }
  set("LOCAL_RANK", host.variable("SLURM_LOCALID"));
  set("LOCAL_WORLD_SIZE", std::to_string(rank.count));
  set("GROUP_WORLD_SIZE", host.variable("SLURM_JOB_NUM_NODES"));
}

bool have_all_ended(const Host& host, const Path& folder) {
  const std::vector<std::string> names = list_names(folder / "ranks");
  const auto count =
      std::ranges::count_if(names, [](const std::string& name) { return name.ends_with(".end"); });
  return count >= parse_number<std::ptrdiff_t>(host.variable("SLURM_NTASKS")).value_or(1);
}

// Records the failure with the last lines of the rank's stderr.
void put_failure(const Path& folder, int number, const wire::JobEnd& end, const std::string& err) {
  const std::string text = read_end_of_file(folder / err, last_bytes).value_or("");
  std::string lines = std::to_string(end.at->count()) + "\n";
  for (const std::string_view line : find_last_lines(text, last_lines_of_rank)) {
    lines.append(line).append("\n");
  }
  const Path failures = folder / "failures";
  put_file(failures / text::format("rank.{}", number), lines);
  put_file(failures / text::format("end.{}", number), text::format("{} {}\n", number, to_end_line(end)));
}

}  // namespace

int run_slurm_rank(const Host& host, const Path& folder, const SlurmRank& rank) {
  const auto number = parse_number<int>(host.variable("SLURM_PROCID"));
  if (!number || *number < 0) {
    constexpr std::string_view problem = "remote: srun has not set SLURM_PROCID\n";
    write_whole(STDERR_FILENO, problem);
    return 127;
  }
  set_variables(host, rank);
  set_interface(host);
  RankFiles files;
  if (*number != 0) {
    // torch_agent.py writes the files of the ranks.
    const std::string name = text::format("ranks/{}{}.", rank.is_agent ? "agent." : "", *number);
    files.out = name + "out";
    files.err = name + "err";
  }
  files.note = text::format("ranks/.note.{}", *number);
  wire::JobEnd end{.how = run_job_command(host, folder, files),
                   .at = {},
                   .by = "slurm",
                   .node = host.variable("SLURMD_NODENAME")};
  end.at = read_wall_clock();
  put_file(folder / text::format("ranks/{}.end", *number), to_end_line(end) + "\n");
  if (end.how.succeeded()) {
    return 0;
  }
  // A rank that was stopped because another one had failed has not failed itself.
  const int signal = find_end_signal();
  if (!rank.is_agent && (signal == 0 || end.how.signal != signal)) {
    put_failure(folder, *number, end, files.err);
  }
  for (int tries = 0; rank.grace && tries < *rank.grace * 5 && find_end_signal() == 0; ++tries) {
    if (have_all_ended(host, folder)) {
      break;
    }
    ::usleep(200'000);
  }
  return end.how.signal != 0 ? 128 + end.how.signal : end.how.code;
}

}  // namespace remote::agent
