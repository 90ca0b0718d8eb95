#pragma once

#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// Returns what programs need to read the folder if it may be lost at the user's last logout, such as
// "a Kerberos ticket" (NFS with sec=krb5) or "AFS tokens"; "" if nothing of the kind is known.
std::string find_access_needs(const Host& host, const Path& folder);

}  // namespace remote::agent
