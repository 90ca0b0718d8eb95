#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <remote/project.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::project {

// How long the servers are waited for that are only asked for news: connecting included.
inline constexpr std::chrono::milliseconds ask_limit{3000};

// What a Project holds. The calls are in files of their own (calls.hpp); they are what the API means.
class Core {
 public:
  // A null connector is replaced by the real one, over libssh.
  Core(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector = nullptr);

  const config::Config config;
  jobs::Store store;
  const Hooks hooks;

  const Cancel& cancel() const { return hooks.cancel; }
  // The connections of this project.
  ssh::Connector& connector();

  // Hands an event over. Any thread.
  void tell(const Event& event);
  // The callback as one that is not called while another one is.
  template <typename... Arguments>
  std::function<void(Arguments...)> one_at_a_time(std::function<void(Arguments...)> callback) {
    if (!callback) {
      return {};
    }
    return [this, callback = std::move(callback)](Arguments... arguments) {
      const std::lock_guard lock(callbacks_);
      callback(arguments...);
    };
  }

  std::vector<config::Server> servers(const std::vector<std::string>& globs) const {
    return config::select_servers(config, globs);
  }

 private:
  std::recursive_mutex callbacks_;  // a callback may call the Project, which calls back
  std::mutex connector_mutex_;
  std::unique_ptr<ssh::Connector> connector_;  // made when it is first asked for
};

}  // namespace remote::project
