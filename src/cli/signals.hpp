#pragma once

#include <remote/cancel.hpp>

namespace remote::cli {

// A token that SIGINT and SIGTERM cancel. A second SIGINT ends the process at once. Call once, before any
// thread is started.
Cancel cancel_on_signals();

}  // namespace remote::cli
