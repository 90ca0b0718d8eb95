#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// The digest of what packages are installed from: that of the client's files, and what lies at `places` on
// this server, which the client cannot read. Of files that is their size and time; of folders that of all
// files in them. Places can begin with "~/". Without places it is `digest`.
std::string digest_with_places(const Host& host, const std::string& digest,
                               const std::vector<std::string>& places);

}  // namespace remote::agent
