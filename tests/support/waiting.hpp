#pragma once

#include <functional>
#include <string>

namespace remote::test {

// Waits until `condition` holds; false when it does not within `seconds`.
bool eventually(const std::function<bool()>& condition, double seconds = 30);
// The same for a test that cannot go on without it: fails the test and says what was waited for.
void until(const std::function<bool()>& condition, const std::string& what);

}  // namespace remote::test
