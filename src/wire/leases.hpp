#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/lease.hpp>

#include "wire/fields.hpp"

// Leases of a server's GPUs, cores and memory, among all of its users (docs/sharing.md).

namespace remote::wire {

constexpr int max_leased = std::numeric_limits<int>::max();
constexpr long long max_leased_memory = 1LL << 60U;  // bytes
constexpr std::size_t max_leased_gpus = 128;

// The resources to lease, all or none.
struct LeaseTerms {
  int gpus = 0;
  int cpus = 0;
  std::uint64_t memory = 0;  // bytes
  std::vector<int> among{};  // indices of the GPUs that may be leased; empty: all
  std::string prologue{};    // shell text; if no program that lists GPUs is found, its PATH is searched too

  static constexpr auto fields() {
    using T = LeaseTerms;
    return field_list(
        field("gpus", &T::gpus, in_range(0, max_leased)), field("cpus", &T::cpus, in_range(0, max_leased)),
        field("memory", &T::memory, in_range(0, max_leased_memory)),
        field("among", &T::among, at_most(1024).range(0, max_leased)), field("prologue", &T::prologue));
  }
  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

// The lease of jobs that start together.
struct LeaseToTake {
  LeaseTerms terms;
  bool waits = false;         // the jobs wait in line until the lease can be taken
  bool is_together = false;   // the supervisor of the launch decides when: see LeaseOrder
  bool chooses_port = false;  // the jobs get a new MASTER_PORT when they have the lease

  static constexpr auto fields() {
    using L = LeaseToTake;
    return field_list(field("terms", &L::terms), field("waits", &L::waits),
                      field("is_together", &L::is_together), field("chooses_port", &L::chooses_port));
  }
  friend bool operator==(const LeaseToTake&, const LeaseToTake&) = default;
};

struct LeasesRequest {
  static constexpr std::string_view kind = "leases";

  std::optional<LeaseTerms> terms{};  // also requests how much of this is free

  static constexpr auto fields() { return field_list(field("terms", &LeasesRequest::terms)); }
};

// The free and total resources of a server that can be leased, of the kinds in the terms.
struct FreeResources {
  int gpus = 0;
  int all_gpus = 0;               // those that may be leased
  int server_gpus = 0;            // including those that the user cannot see
  std::string hiding_variable{};  // the variable that hides them; "": none
  int cpus = 0;
  int all_cpus = 0;          // those that the user's control group permits
  int server_cpus = 0;       // for all users
  std::uint64_t memory = 0;  // bytes
  std::uint64_t all_memory = 0;
  std::uint64_t server_memory = 0;

  static constexpr auto fields() {
    using F = FreeResources;
    return field_list(field("gpus", &F::gpus, in_range(0, max_leased)),
                      field("all_gpus", &F::all_gpus, in_range(0, max_leased)),
                      field("server_gpus", &F::server_gpus, in_range(0, max_leased)),
                      field("hiding_variable", &F::hiding_variable, a_word("_", 64)),
                      field("cpus", &F::cpus, in_range(0, max_leased)),
                      field("all_cpus", &F::all_cpus, in_range(0, max_leased)),
                      field("server_cpus", &F::server_cpus, in_range(0, max_leased)),
                      field("memory", &F::memory, in_range(0, max_leased_memory)),
                      field("all_memory", &F::all_memory, in_range(0, max_leased_memory)),
                      field("server_memory", &F::server_memory, in_range(0, max_leased_memory)));
  }
};

struct LeasesReply {
  static constexpr std::string_view kind = "leases";

  static constexpr std::size_t most_leases = 5000;

  std::vector<Lease> leases{};          // sorted by arrival; only the first ones if there are too many
  std::optional<FreeResources> free{};  // set only if there were terms
  std::string no_leases{};              // why the server has no leases
  // If two servers have the same text, they are two names of one machine, with the same leases; "": unknown.
  std::string pool{};

  static constexpr auto fields() {
    using R = LeasesReply;
    return field_list(field("leases", &R::leases, at_most(most_leases)), field("free", &R::free),
                      field("no_leases", &R::no_leases, a_line(1000)), field("pool", &R::pool, a_word("-")));
  }
};

template <>
struct Fields<Lease> {
  static constexpr auto fields() {
    using L = Lease;
    return field_list(field("user", &L::user, a_name()), field("own", &L::own), field("waits", &L::waits),
                      field("gpus", &L::gpus, a_word(":._-", max_leased_gpus)),
                      field("cpus", &L::cpus, in_range(0, max_leased)),
                      field("memory", &L::memory, in_range(0, max_leased_memory)));
  }
};

}  // namespace remote::wire
