#pragma once

#include "cli/context.hpp"

namespace remote::cli {

// Shows `remote status`, or `remote` without a command in a project. Returns the exit code.
int show_status(Context& context);

// Shows how to get started: the output of `remote` without a command if neither this folder nor one above it
// is a project. Returns the exit code for wrong usage.
int show_no_project(Context& context);

}  // namespace remote::cli
