#pragma once

namespace remote::agent::test {

// The absolute path of the sources. It is defined in its own file, because otherwise a compiler cache would
// miss on every test file in other checkouts.
extern const char* const source_folder;

}  // namespace remote::agent::test
