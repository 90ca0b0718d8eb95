#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "wire/pairs.hpp"

namespace remote::agent {

// Adds the facts about this server that others need, except its ports. `master`: the first server's address
// for a launch.
void describe_server(const Host& host, const std::string& master, NetworkServer& server);

// The program that manages the firewall here, or "none". For nft, includes the chain that drops packets, if
// this user may read it: "nft-inet-filter-input".
std::string find_firewall(const Host& host);

}  // namespace remote::agent
