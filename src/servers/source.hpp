#pragma once

#include <string>

#include "wire/source.hpp"

// The sender of a project, as recorded by a server.

namespace remote::servers {

// Describes the sender: "from ada@laptop:/home/ada/proj, 2 hours ago" for another machine, "from
// /home/ada/copy, 2 hours ago" for another folder on this one.
std::string sent_by_text(const wire::ProjectSource& source, const wire::ProjectSource& own);

}  // namespace remote::servers
