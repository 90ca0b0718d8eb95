#pragma once

#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"
#include "wire/provision.hpp"

namespace remote::agent {

// Installs the packages in the environment. Throws ProvisionError.
void install_packages(Steps& steps, const PythonPlace& place, const wire::Packages& packages);

}  // namespace remote::agent
