#pragma once

#include "cli/context.hpp"

namespace remote::cli {

// What `remote status` shows, which `remote` alone shows in a project. Returns the exit code.
int show_status(Context& context);

// What `remote` alone shows where there is no project here or above: how to begin. Returns the exit code of
// wrong usage.
int show_no_project(Context& context);

}  // namespace remote::cli
