#include "rules/members.hpp"

#include <algorithm>
#include <cassert>

namespace remote::rules {

bool is_sickness(std::string_view mark) {
  return std::ranges::find(sicknesses, mark) != sicknesses.end();
}

Members::Members(std::vector<std::string> servers, const std::vector<int>& ranks, std::size_t spares) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ranks_[servers[i]] = ranks.at(i);
  }
  const auto first_spare = servers.end() - static_cast<std::ptrdiff_t>(spares);
  spares_.assign(first_spare, servers.end());
  servers.erase(first_spare, servers.end());
  names_ = std::move(servers);
}

bool Members::is_member(const std::string& server) const {
  return std::ranges::find(names_, server) != names_.end();
}

bool Members::is_spare(const std::string& server) const {
  return std::ranges::find(spares_, server) != spares_.end();
}

wire::Shape Members::shape(const std::string& server) const {
  wire::Shape shape;
  for (const std::string& name : names_) {
    if (name == server) {
      shape.first_rank = shape.world_size;
      shape.node_rank = shape.nodes;
    }
    shape.world_size += ranks_.at(name);
    ++shape.nodes;
  }
  return shape;
}

bool Members::blame(const wire::Cause& cause) {
  constexpr int twice = 2;
  const auto* failure = std::get_if<wire::RankFailure>(&cause);
  if (failure == nullptr || failure->after_peer || !is_sickness(failure->mark)) {
    return false;
  }
  const int count = ++failures_[{failure->server, failure->mark}];
  if (count < twice || failure->server == names_.front()) {
    return false;
  }
  sick_[failure->server] = failure->mark;
  return true;
}

std::vector<std::string> Members::without(const std::set<std::string>& silent, Seconds now,
                                          Seconds patience) const {
  std::vector<std::string> ready;
  std::ranges::copy_if(spares_, std::back_inserter(ready), [&](const std::string& spare) {
    const auto heard = heard_.find(spare);
    return heard != heard_.end() && now - heard->second <= patience;
  });
  auto next = ready.begin();
  std::vector<std::string> names;
  for (const std::string& name : names_) {
    if (!silent.contains(name) && !sick_.contains(name)) {
      names.push_back(name);
    } else if (next != ready.end()) {
      names.push_back(*next++);
    }
  }
  return names;
}

void Members::become(std::vector<std::string> names) {
  names_ = std::move(names);
  std::erase_if(spares_, [this](const std::string& spare) { return is_member(spare); });
}

}  // namespace remote::rules
