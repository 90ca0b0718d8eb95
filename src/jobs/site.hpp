#pragma once

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::jobs {

// The context of actions on jobs in one call. The references must outlive the action.
struct Site {
  const config::Config& config;
  Store& store;
  ssh::Connector& connector;
  Cancel cancel;
};

}  // namespace remote::jobs
