#pragma once

namespace remote::test {

// Absolute paths of this build. They are in their own file, because otherwise a compiler cache would miss on
// every test file in every other checkout.
extern const char* const remote_binary;
extern const char* const remote_agent;
extern const char* const source_folder;

}  // namespace remote::test
