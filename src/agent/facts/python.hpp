#pragma once

#include "agent/facts/activation.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Reads the Python of the environment, the torch in its packages and, if requested, the packages. It reads
// their folders and starts that Python only if they are in an unusual place.
void read_python(const Host& host, const wire::FactsRequest& request, const Activation& activation,
                 ServerFacts& facts);

}  // namespace remote::agent
