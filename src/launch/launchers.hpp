#pragma once

#include "launch/plan.hpp"

// What the launchers share. Only src/launch includes it.

namespace remote::launch {

// Variables in order, of which each name stands once.
class EnvBuilder {
 public:
  void set(const std::string& name, const std::string& value);
  void set(const std::string& name, int value) { set(name, std::to_string(value)); }
  // Only where the user set none.
  void set_default(const Env& user, const std::string& name, const std::string& value);
  Env take() { return std::move(env_); }

 private:
  Env env_;
};

// What every process of a server gets but for its rank: thread count, buffering and interfaces where the user
// set none, and then what the user set.
void add_common(EnvBuilder& env, const LaunchSpec& spec, const Node& node);

// The tags of a process: the user's or the default ones, and `master` for rank 0.
std::vector<std::string> tags_of(const LaunchSpec& spec, bool master);

std::vector<PlannedProcess> plan_ranks(const LaunchSpec& spec, const std::vector<Node>& nodes,
                                       int world_size);
std::vector<PlannedProcess> plan_torchrun(const LaunchSpec& spec, const std::vector<Node>& nodes,
                                          int world_size);

}  // namespace remote::launch
