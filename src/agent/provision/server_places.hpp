#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// The digest of everything that packages are installed from: the client's digest, and the content of `places`
// on this server, which the client cannot read. A file is represented by its size and time, a folder by those
// of all its files. Places can begin with "~/". Without places, returns `digest`.
std::string digest_with_places(const Host& host, const std::string& digest,
                               const std::vector<std::string>& places);

}  // namespace remote::agent
