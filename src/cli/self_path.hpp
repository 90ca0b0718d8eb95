#pragma once

#include <filesystem>

namespace remote::cli {

// The file of the program that runs. In a test that is the test, not `remote`. Throws Error when the system
// does not tell.
std::filesystem::path self_path();

}  // namespace remote::cli
