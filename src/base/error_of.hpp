#pragma once

#include <exception>

#include <remote/error.hpp>

namespace remote {

Cause cause_of(int error);

// Converts an exception of the standard library. Those of <filesystem> name their file. An Error is returned
// unchanged.
Error error_of(const std::exception& exception);

}  // namespace remote
