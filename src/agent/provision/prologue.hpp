#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/host/host.hpp"

namespace remote::agent {

// The result of the user's prologue.
struct Prologue {
  Host host;           // with the environment after the prologue
  std::string limits;  // shell text that sets its limits and umask
};

// Runs shell text that sets __failed to an exit status if it fails (server/lib/prologue.sh). on_errors gets
// its output. Throws ProvisionError.
Prologue run_prologue(const Host& host, const std::string& text,
                      const std::function<void(std::string_view)>& on_errors);

}  // namespace remote::agent
