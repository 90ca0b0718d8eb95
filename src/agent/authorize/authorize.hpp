#pragma once

#include <string_view>

#include "agent/host/host.hpp"
#include "wire/authorize.hpp"

namespace remote::agent {

// Adds a key to ~/.ssh/authorized_keys, as ssh-copy-id does, and sets the modes that sshd wants. Waits up to
// 10 s for another client that adds one.
wire::AuthorizeReply authorize_key(const Host& host, const wire::AuthorizeRequest& request);

// Whether a text of authorized_keys has the key: added (it does not), present, or restricted. A key in the
// value of an option does not count.
wire::KeyState find_key(std::string_view text, const wire::AuthorizeRequest& request);

}  // namespace remote::agent
