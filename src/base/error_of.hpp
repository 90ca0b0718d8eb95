#pragma once

#include <exception>

#include <remote/error.hpp>

namespace remote {

// What an exception of the standard library means here: those of <filesystem> name their file. An Error stays
// what it is.
Error error_of(const std::exception& exception);

}  // namespace remote
