#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Leases of a server's GPUs, cores and memory, among all of its users (docs/sharing.md). Each lease is a file
// of its user in a shared folder. A shared lock would not work, because any user could hold it forever.
// Instead, a supervisor first writes its claim and then reads all files again: of two simultaneous claims, at
// least one sees the other, and the later one withdraws.

namespace remote::rules {

enum class LeaseState {
  held,
  waiting,    // in line and ready, so later arrivals must wait
  announced,  // in line, but waits for another server first
  claimed,    // to become a lease, unless an earlier claim exists
};

struct LeaseFile {
  LeaseState state = LeaseState::held;
  std::uint64_t arrival = 0;  // nanoseconds since boot
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;            // bytes
  std::vector<std::string> gpus = {};  // by UUID, or amd:ID, or intel:INDEX
  friend bool operator==(const LeaseFile&, const LeaseFile&) = default;
};

// nullopt for any other text, and for impossible numbers. The file may be another user's.
std::optional<LeaseFile> parse_lease_file(std::string_view text);
std::string format_lease_file(const LeaseFile& file);

struct LeaseEntry {
  LeaseFile file;
  std::string name;  // of the lease's file
  unsigned uid = 0;
};

struct LeaseNeeds {
  std::size_t gpus = 0;
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;            // bytes
  std::optional<std::set<int>> among;  // indices of the GPUs that may be leased; nullopt: all
};

// A server's resources, only of the kinds needed.
struct LeaseMachine {
  struct Gpu {
    int index = 0;
    std::string key;       // as in LeaseFile::gpus
    bool is_used = false;  // a process without a lease is using it
  };
  // The limits of a user's control groups for all of the user's jobs together; nullopt: no limit.
  struct Limits {
    unsigned uid = 0;
    std::optional<std::uint64_t> cpus{};
    std::optional<std::uint64_t> memory{};  // bytes
  };
  std::vector<Gpu> gpus;
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;     // bytes
  std::uint64_t available = 0;  // the part of `memory` that is available
  Limits limits = {};
};

// The free resources on a machine for certain needs.
class LeaseSurvey {
 public:
  // `others`: all entries except the own one.
  LeaseSurvey(const LeaseMachine& machine, const std::vector<LeaseEntry>& others, const LeaseNeeds& needs);

  // Whether they are sufficient now.
  bool is_enough() const;
  // Whether they would be insufficient even if everything were free.
  bool is_never_enough() const;
  // Whether an earlier waiter is in line and ready.
  bool has_earlier_waiter(std::uint64_t arrival, const std::string& name) const;
  // The own position in line, starting at 1.
  std::size_t position(std::uint64_t arrival, const std::string& name) const;
  bool has_claims() const { return !claims_.empty(); }
  bool has_earlier_claim(std::uint64_t arrival, const std::string& name) const;
  bool is_owned(const std::string& gpu) const { return owned_.contains(gpu); }
  std::size_t count_waiters() const { return waiters_.size(); }
  // The free GPUs that may be leased, in the machine's order.
  const std::vector<LeaseMachine::Gpu>& free_gpus() const { return free_; }
  std::size_t allowed_gpus() const { return allowed_; }
  // The resources that the user could lease if all were free.
  std::uint64_t all_cpus() const {
    return std::min(machine_.cpus, machine_.limits.cpus.value_or(machine_.cpus));
  }
  std::uint64_t all_memory() const {
    return std::min(machine_.memory, machine_.limits.memory.value_or(machine_.memory));
  }
  // The resources that others have not leased; 0 if they lease more than there is.
  std::uint64_t free_cpus() const { return cpus_; }
  std::uint64_t free_memory() const { return memory_; }

 private:
  using Place = std::pair<std::uint64_t, std::string>;

  LeaseMachine machine_;
  LeaseNeeds needs_;
  std::vector<std::pair<LeaseState, Place>> waiters_;
  std::vector<Place> claims_;
  std::set<std::string> owned_;
  std::vector<LeaseMachine::Gpu> free_;
  std::size_t allowed_ = 0;
  std::uint64_t cpus_ = 0;
  std::uint64_t memory_ = 0;
};

}  // namespace remote::rules
