#pragma once

namespace remote::test {

// Absolute paths of this build. They stand in one file of their own, because a compiler cache would otherwise
// miss on every test file in every other checkout.
extern const char* const remote_binary;
extern const char* const remote_agent;
extern const char* const source_folder;

}  // namespace remote::test
