#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Leases of the GPUs, cores and memory of a server, among all of its users (docs/sharing.md). Each lease is a
// file of its user in a shared folder. A lock shared by all would not work, because any user could hold it
// forever. Instead, a supervisor writes its claim first and then reads all files again: of two simultaneous
// claims at least one sees the other, and the later one withdraws.

namespace remote::rules {

enum class LeaseState {
  held,
  waiting,    // in line and ready: later arrivals must wait
  announced,  // in line, but waits for another server first
  claimed,    // to be held, unless an earlier claim exists
};

// The content of a lease's file.
struct LeaseFile {
  LeaseState state = LeaseState::held;
  std::uint64_t arrival = 0;  // nanoseconds since the boot
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;            // bytes
  std::vector<std::string> gpus = {};  // by UUID, or amd:ID, or intel:INDEX
  friend bool operator==(const LeaseFile&, const LeaseFile&) = default;
};

// nullopt for any other text, and for numbers that no machine has. The file may be another user's.
std::optional<LeaseFile> parse_lease_file(std::string_view text);
std::string format_lease_file(const LeaseFile& file);

struct LeaseEntry {
  LeaseFile file;
  std::string name;  // of the file
  unsigned uid = 0;
};

struct LeaseNeeds {
  std::size_t gpus = 0;
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;            // bytes
  std::optional<std::set<int>> among;  // indices of the GPUs that may be taken; nullopt: all
};

// The resources of a server, of the kinds needed.
struct LeaseMachine {
  struct Gpu {
    int index = 0;
    std::string key;       // as in LeaseFile::gpus
    bool is_used = false;  // a process without a lease uses it
  };
  // What a user's control groups allow to all jobs of the user together; nullopt: no limit.
  struct Limits {
    unsigned uid = 0;
    std::optional<std::uint64_t> cpus{};
    std::optional<std::uint64_t> memory{};  // bytes
  };
  std::vector<Gpu> gpus;
  std::uint64_t cpus = 0;
  std::uint64_t memory = 0;     // bytes
  std::uint64_t available = 0;  // of it
  Limits limits = {};
};

// The free resources on a machine, for some needs.
class LeaseSurvey {
 public:
  // `others`: all entries but the own one.
  LeaseSurvey(const LeaseMachine& machine, const std::vector<LeaseEntry>& others, const LeaseNeeds& needs);

  // Whether it is enough now.
  bool is_enough() const;
  // Whether it would not be enough if everything were free.
  bool is_never_enough() const;
  // Whether one that came earlier is in line and may take.
  bool has_earlier_waiter(std::uint64_t arrival, const std::string& name) const;
  // The own place in line, from 1.
  std::size_t position(std::uint64_t arrival, const std::string& name) const;
  bool has_claims() const { return !claims_.empty(); }
  bool has_earlier_claim(std::uint64_t arrival, const std::string& name) const;
  bool is_owned(const std::string& gpu) const { return owned_.contains(gpu); }
  std::size_t count_waiters() const { return waiters_.size(); }
  // The free GPUs that may be taken, in the machine's order.
  const std::vector<LeaseMachine::Gpu>& free_gpus() const { return free_; }
  std::size_t allowed_gpus() const { return allowed_; }
  // All that the user may lease, if it were free.
  std::uint64_t all_cpus() const {
    return std::min(machine_.cpus, machine_.limits.cpus.value_or(machine_.cpus));
  }
  std::uint64_t all_memory() const {
    return std::min(machine_.memory, machine_.limits.memory.value_or(machine_.memory));
  }
  // Not leased by others; 0 if they lease more than there is.
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
