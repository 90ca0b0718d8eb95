#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/launch/thread_task.hpp"
#include "rules/launch_policy.hpp"
#include "wire/start.hpp"

namespace remote::agent {

// Starts points in threads, because storage may hang.
class PointStarts {
 public:
  using Start = std::function<wire::StartedJob()>;

  PointStarts();  // throws std::runtime_error

  // Runs `start` in a thread. Returns its result, or nullopt if there is none within `patience`. Exceptions
  // count as failures.
  std::optional<wire::StartedJob> start(const std::string& point, Start start, rules::Seconds patience);
  // The results of late starts with their points, each only once.
  std::vector<std::pair<std::string, wire::StartedJob>> take_late();

 private:
  struct UnderWay {
    explicit UnderWay(int wake) : task(wake) {}

    wire::StartedJob result;
    ThreadTask task;  // must be the last member, because its thread uses the other one
  };

  Descriptor wake_;
  std::map<std::string, std::unique_ptr<UnderWay>> late_;
};

}  // namespace remote::agent
