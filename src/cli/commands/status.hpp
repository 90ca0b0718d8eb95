#pragma once

#include "cli/context.hpp"

namespace remote::cli {

// What `remote status` shows, which `remote` alone shows in a project. Returns the exit code.
int show_status(Context& context);

}  // namespace remote::cli
