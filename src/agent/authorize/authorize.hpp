#pragma once

#include <string_view>

#include "agent/host/host.hpp"
#include "wire/authorize.hpp"

namespace remote::agent {

// Adds a key to ~/.ssh/authorized_keys, as ssh-copy-id does, and sets the modes that sshd requires. If
// another client is adding a key, waits up to 10 s for it.
wire::AuthorizeReply authorize_key(const Host& host, const wire::AuthorizeRequest& request);

// Looks up a key in the text of authorized_keys: `added` means that it is missing, the others are `present`
// and `restricted`. A key inside an option's value does not count.
wire::KeyState find_key(std::string_view text, const wire::AuthorizeRequest& request);

}  // namespace remote::agent
