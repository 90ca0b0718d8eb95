#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>
#include <remote/network.hpp>

// The network between the servers, as `remote check` prints it.

namespace remote::cli {

// What stands under facts/network of a server (docs/check/network.md).
nlohmann::json to_json(const Network& network, std::size_t server);

}  // namespace remote::cli
