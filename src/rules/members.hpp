#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/launch_policy.hpp"

// The servers that take part in the attempts of a launch with restarts, from its coordinator's perspective.

namespace remote::rules {

// Failures caused by the machine, as marks in a RankFailure.
constexpr std::array<std::string_view, 4> sicknesses = {"gpu", "ecc", "xid", "disk"};
bool is_sickness(std::string_view mark);

class Members {
 public:
  // `ranks`: the number for each server, in the order of the servers. The last `spares` servers have no ranks
  // at first.
  Members(std::vector<std::string> servers, const std::vector<int>& ranks, std::size_t spares);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& spares() const { return spares_; }
  bool is_member(const std::string& server) const;
  bool is_spare(const std::string& server) const;
  bool is_sick(const std::string& server) const { return sick_.contains(server); }
  std::string sickness(const std::string& server) const { return sick_.at(server); }
  int ranks(const std::string& server) const { return ranks_.at(server); }

  void hear_spare(const std::string& server, Seconds now) { heard_[server] = now; }
  // World size, first rank, node rank and number of nodes of a member; the port and the rest remain empty.
  wire::Shape shape(const std::string& server) const;
  // Counts a failure. Returns whether its server is now sick, because it failed twice for the same reason.
  // The first server is never sick, because the launch cannot continue without it.
  bool blame(const wire::Cause& cause);
  // The members of the next attempt. A spare that sent a request within `patience` takes the place of a
  // silent or sick member, so all others keep their ranks.
  std::vector<std::string> without(const std::set<std::string>& silent, Seconds now, Seconds patience) const;
  void become(std::vector<std::string> names);

 private:
  std::vector<std::string> names_;  // members of this attempt, in the order of their ranks
  std::vector<std::string> spares_;
  std::map<std::string, int> ranks_;
  std::map<std::string, Seconds> heard_;                         // spare -> time of its last request
  std::map<std::pair<std::string, std::string>, int> failures_;  // (server, mark) -> attempts
  std::map<std::string, std::string> sick_;                      // server -> mark
};

}  // namespace remote::rules
