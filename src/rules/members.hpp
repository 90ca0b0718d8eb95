#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/launch_policy.hpp"

// Which servers take part in the attempts of a launch with restarts, as its coordinator knows it.

namespace remote::rules {

// Failures that are the machine's fault, by the mark that a RankFailure carries.
constexpr std::array<std::string_view, 4> sicknesses = {"gpu", "ecc", "xid", "disk"};
bool is_sickness(std::string_view mark);

class Members {
 public:
  // `ranks`: of each of the servers, in their order. The last `spares` of them have no ranks at first.
  Members(std::vector<std::string> servers, const std::vector<int>& ranks, std::size_t spares);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& spares() const { return spares_; }
  bool is_member(const std::string& server) const;
  bool is_spare(const std::string& server) const;
  bool is_sick(const std::string& server) const { return sick_.contains(server); }
  std::string sickness(const std::string& server) const { return sick_.at(server); }
  int ranks(const std::string& server) const { return ranks_.at(server); }

  void hear_spare(const std::string& server, Seconds now) { heard_[server] = now; }
  // World size, first rank, node rank and nodes of a member; port and the rest stay empty.
  wire::Shape shape(const std::string& server) const;
  // Counts a failure. Returns whether its server is now sick: it failed twice for the same reason. The first
  // server never is, because the launch cannot continue without it.
  bool blame(const wire::Cause& cause);
  // The members of the next attempt. A spare that asked within `patience` takes the place of a silent or sick
  // member, which keeps the ranks of all others.
  std::vector<std::string> without(const std::set<std::string>& silent, Seconds now, Seconds patience) const;
  void become(std::vector<std::string> names);

 private:
  std::vector<std::string> names_;  // of this attempt, in the order of their ranks
  std::vector<std::string> spares_;
  std::map<std::string, int> ranks_;
  std::map<std::string, Seconds> heard_;                         // spare -> its last question
  std::map<std::pair<std::string, std::string>, int> failures_;  // (server, mark) -> attempts
  std::map<std::string, std::string> sick_;                      // server -> mark
};

}  // namespace remote::rules
