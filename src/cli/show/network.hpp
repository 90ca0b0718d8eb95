#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>
#include <remote/network.hpp>

// Output of `remote check` about the network between the servers.

namespace remote::cli {

// The value of facts/network for a server (docs/check/network.md).
nlohmann::json to_json(const Network& network, std::size_t server);

}  // namespace remote::cli
