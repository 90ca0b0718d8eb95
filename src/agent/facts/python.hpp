#pragma once

#include "agent/facts/activation.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// The Python of the environment, the torch in its packages and, if the request asks for them, the packages.
// It reads their folders and does not start that Python, unless they are in an unusual place.
void read_python(const Host& host, const wire::FactsRequest& request, const Activation& activation,
                 ServerFacts& facts);

}  // namespace remote::agent
