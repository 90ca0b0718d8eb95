#pragma once

#include <string>

#include <remote/error.hpp>

namespace remote::cli {

// What to try after the error: its own hint, then the option or command that does its remedy. Empty if there
// is nothing to say.
std::string hint_of(const Error& error);

}  // namespace remote::cli
