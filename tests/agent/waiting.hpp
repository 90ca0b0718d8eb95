#pragma once

#include "support/waiting.hpp"

namespace remote::agent::test {

using remote::test::eventually;
using remote::test::patience;

}  // namespace remote::agent::test
