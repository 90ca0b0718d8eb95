#include "support/paths.hpp"

namespace remote::test {

// tests/CMakeLists.txt defines these for this file alone.
const char* const remote_binary = REMOTE_BINARY;
const char* const remote_agent = REMOTE_AGENT;
const char* const source_folder = REMOTE_SOURCE_DIR;

}  // namespace remote::test
