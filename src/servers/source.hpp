#pragma once

#include <string>

#include "wire/source.hpp"

// The sender of a project, as a server records it.

namespace remote::servers {

// "from ada@laptop:/home/ada/proj, 2 hours ago" for another machine, "from /home/ada/copy, 2 hours ago" for
// another folder of this one.
std::string sent_by_text(const wire::ProjectSource& source, const wire::ProjectSource& own);

}  // namespace remote::servers
