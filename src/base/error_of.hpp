#pragma once

#include <exception>

#include <remote/error.hpp>

namespace remote {

// The cause that an errno stands for.
Cause cause_of(int error);

// What an exception of the standard library means here: those of <filesystem> name their file. An Error stays
// what it is.
Error error_of(const std::exception& exception);

}  // namespace remote
