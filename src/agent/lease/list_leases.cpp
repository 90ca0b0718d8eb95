#include "agent/lease/list_leases.hpp"

#include <algorithm>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host/users.hpp"
#include "agent/lease/lease_files.hpp"
#include "agent/lease/lease_machine.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The reply has to fit into a frame (1 MiB), while other users determine the number of leases and the names
// of GPUs.
constexpr std::size_t most_reply_bytes = 900'000;
constexpr std::size_t bytes_of_fields = 80;

int clamp_number(std::uint64_t number) {
  return static_cast<int>(std::min<std::uint64_t>(number, wire::max_leased));
}

std::uint64_t clamp_memory(std::uint64_t bytes) {
  return std::min<std::uint64_t>(bytes, wire::max_leased_memory);
}

wire::FreeResources find_free(const Host& host, const wire::LeaseTerms& terms,
                              const std::vector<rules::LeaseEntry>& entries) {
  const rules::LeaseNeeds needs = to_needs(terms);
  const LeaseMachine found = read_lease_machine(host, needs, terms.prologue);
  const rules::LeaseMachine& machine = found.resources;
  const rules::LeaseSurvey survey(machine, entries, needs);
  return {.gpus = clamp_number(survey.free_gpus().size()),
          .all_gpus = clamp_number(survey.allowed_gpus()),
          .server_gpus = clamp_number(found.server_gpus),
          .hiding_variable = found.hiding_variable,
          .cpus = clamp_number(survey.free_cpus()),
          .all_cpus = clamp_number(survey.all_cpus()),
          .server_cpus = clamp_number(machine.cpus),
          .memory = clamp_memory(survey.free_memory()),
          .all_memory = clamp_memory(survey.all_memory()),
          .server_memory = clamp_memory(machine.memory)};
}

// A name for a folder of leases on a running machine. The machine's containers may use other folders.
std::string name_pool(const Host& host, const Path& folder) {
  const auto info = look_at(folder);
  const std::string boot = read_boot_id(host);
  return info && wire::is_word(boot, "-") ? text::format("{}-{}-{}", boot, info->st_dev, info->st_ino) : "";
}

}  // namespace

wire::LeasesReply list_leases(const Host& host, const wire::LeasesRequest& request) {
  wire::LeasesReply reply;
  std::vector<rules::LeaseEntry> entries;
  try {
    const Path folder = find_leases_folder(host);
    reply.pool = name_pool(host, folder);
    entries = read_lease_entries(folder);
    if (request.terms) {
      reply.free = find_free(host, *request.terms, entries);
    }
  } catch (const LeaseRefused& why) {
    reply.no_leases = wire::to_line(why.what(), 1000);
    return reply;
  }
  UserNames users(host);
  std::size_t bytes = 0;
  for (rules::LeaseEntry& entry : entries) {
    remote::Lease lease{.user = users.find(entry.uid), .own = entry.uid == ::geteuid()};
    using enum rules::LeaseState;
    lease.waits = entry.file.state == waiting || entry.file.state == announced;
    if (!lease.waits) {
      lease.cpus = clamp_number(entry.file.cpus);
      lease.memory = entry.file.memory;
      lease.gpus = std::move(entry.file.gpus);
    }
    bytes += bytes_of_fields + lease.user.size();
    for (const std::string& gpu : lease.gpus) {
      bytes += gpu.size() + 3;
    }
    if (bytes > most_reply_bytes || reply.leases.size() == wire::LeasesReply::most_leases) {
      break;
    }
    reply.leases.push_back(std::move(lease));
  }
  return reply;
}

}  // namespace remote::agent
