#include "agent/source_folder.hpp"

namespace remote::agent::test {

const char* const source_folder = REMOTE_SOURCE_DIR;

}  // namespace remote::agent::test
