#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "agent/lease/lease_files.hpp"
#include "agent/lease/lease_machine.hpp"
#include "rules/leases.hpp"
#include "wire/leases.hpp"

namespace remote::agent {

// A lease or a place in line. The file of the lease must stay open: the lease ends when all copies of the
// descriptor are closed, in this process and in those that have inherited it. Functions throw LeaseRefused if
// the file cannot be written.
class Lease {
 public:
  // Throws LeaseRefused.
  static Lease make(const Host& host);
  // Adopts the inherited descriptor of a file that make() has created in another process. Throws
  // LeaseRefused.
  static Lease adopt(const Host& host, int fd);

  // Never equals lease_fd after make(), so dup2() to lease_fd clears FD_CLOEXEC.
  int fd() const { return file_.get(); }
  const Path& folder() const { return folder_; }
  const std::vector<rules::LeaseMachine::Gpu>& gpus() const { return gpus_; }
  std::size_t find_position(const rules::LeaseSurvey& survey) const {
    return survey.position(arrival_, name_);
  }
  bool is_behind(const rules::LeaseSurvey& survey) const {
    return survey.has_earlier_waiter(arrival_, name_);
  }
  // The free resources, not counting this lease.
  rules::LeaseSurvey survey(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs) const;

  // Leases everything or nothing, within about two seconds. On failure, returns the free resources.
  std::optional<rules::LeaseSurvey> claim(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs);
  // From now on, later arrivals get nothing before this one. With `may_take` unset, it only keeps its place.
  void get_in_line(bool may_take);
  // Releases its resources, but keeps its place in line.
  void give_back();
  // Gives up the lease and removes its file. No other process may have inherited the descriptor.
  void remove();

 private:
  Lease(Path folder, std::string name, Descriptor file);
  void write(rules::LeaseState state, const rules::LeaseNeeds& needs);
  bool is_there() const;
  bool stays_claimed(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs,
                     std::chrono::milliseconds limit) const;

  Path folder_;
  std::string name_;
  Descriptor file_;
  std::uint64_t arrival_;
  std::optional<rules::LeaseState> state_;
  std::vector<rules::LeaseMachine::Gpu> gpus_;
};

// A lease that was taken, with the file `devices` for its jobs: a line for the user, then variables.
struct TakenLease {
  Lease lease;
  std::string devices;
};

// Why a lease was not taken.
struct Shortage {
  std::string reason;            // for the user
  std::vector<unsigned> uids{};  // the users whose leases hold the missing resource
};

// Takes the lease if all of it is free now, and never waits in line. On failure, sets `shortage`. Throws
// LeaseRefused and CannotStart.
std::optional<TakenLease> take_lease(const Host& host, const wire::LeaseTerms& terms, Shortage& shortage);

std::string to_devices_text(const Lease& lease, const LeaseMachine& machine, const rules::LeaseNeeds& needs);

constexpr const char* never_enough = "this server does not have the requested resources";

}  // namespace remote::agent
