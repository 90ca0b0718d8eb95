#pragma once

#include <string>

#include "config/config.hpp"
#include "servers/action.hpp"

// What a project asks to be installed: its requirements.txt, Pipfile or pyproject.toml, read on this machine.

namespace remote::servers {

// In this order of preference. A pyproject.toml that only configures tools asks for nothing.
enum class PackageSource { none, pipenv, requirements, pyproject };

PackageSource package_source(const config::Config& config);
// The name that provision_packages.sh knows, and that summaries show.
std::string to_string(PackageSource source);

// Of all that decides what gets installed: the files (with those that requirements name by -r and -c), pip's
// options, the environment, and the wheels in find_links folders of the project.
std::string packages_digest(const config::Config& config);

// What provision_packages.sh is told. Stands behind provision_variables().
Script packages_variables(const config::Config& config);

}  // namespace remote::servers
