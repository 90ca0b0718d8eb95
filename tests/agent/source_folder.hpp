#pragma once

namespace remote::agent::test {

// The absolute path of the sources. It is defined in a file of its own, because a compiler cache would
// otherwise miss every test file in other checkouts.
extern const char* const source_folder;

}  // namespace remote::agent::test
