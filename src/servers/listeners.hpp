#pragma once

#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

namespace remote::servers {

// Lists the addresses that a server listens on with this TCP port; "0.0.0.0" and "::" mean all. Throws Error.
std::vector<std::string> list_listeners(ssh::Connection& connection, int port, const Cancel& cancel);

}  // namespace remote::servers
