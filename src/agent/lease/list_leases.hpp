#pragma once

#include "agent/host/host.hpp"
#include "wire/leases.hpp"

namespace remote::agent {

// Lists the leases of all users of this server. Also removes this user's old files. Throws CannotStart.
wire::LeasesReply list_leases(const Host& host, const wire::LeasesRequest& request);

}  // namespace remote::agent
