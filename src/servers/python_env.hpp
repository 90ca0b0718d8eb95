#pragma once

#include <string>

#include "config/config.hpp"
#include "servers/action.hpp"

// The Python environment of a project on a server, and the packages in it: where it is, how commands enter
// it, and what the scripts that make it (src/server/provision_*.sh) are told.

namespace remote::servers {

// POSIX sh text that enters the environment: PATH, the variables that conda and virtualenv set, and
// PYTHONPATH with the project and its src. Stands before a command, in any folder. Where there is no
// environment yet, it leaves PATH alone. It sets no options, ends no shell and starts no process (conda's own
// hooks apart). `tree`: the digest of a frozen launch's tree, which PYTHONPATH has in place of the project.
std::string activation(const config::Config& config, const config::Server& server,
                       const std::string& tree = {});

// The same for the inside of a container, which has its own Python: PYTHONPATH and no more.
std::string container_activation(const config::Config& config, const config::Server& server,
                                 const std::string& tree = {});

// The sh text that runs the user's prologue, which activation() begins with; empty where there is none. Where
// it failed, __failed is its exit code afterwards.
std::string prologue(const config::Config& config, const config::Server& server);

// The environment's folder on the server, as remote_path_word() takes it. For `system` a folder that only
// holds records.
std::string environment_folder(const config::Config& config, const config::Server& server);

// The folder on the server for what we keep there ourselves, as remote_path_word() takes it.
std::string scripts_folder(const config::Config& config, const config::Server& server);

// What setup makes, as a digest: another manager, version or option makes another environment.
std::string setup_digest(const config::Config& config);

// Assignments at the head of every provision script.
Script provision_variables(const config::Config& config, const config::Server& server);

// Further ones, for provision_setup.sh. `default_version` is used where configs.yaml names none.
Script setup_variables(const config::Config& config, const std::string& default_version, bool force);

// "3.11": this machine's python3, for conda when configs.yaml names no version; empty when there is none.
std::string local_python_version();

PackageSource package_source(const config::Config& config);
// The name that provision_packages.sh knows.
std::string to_string(PackageSource source);

// Of all that decides what gets installed: the files (with those that requirements name by -r and -c), pip's
// options, the environment, and the wheels in find_links folders of the project.
std::string packages_digest(const config::Config& config);

// What provision_packages.sh is told. Stands behind provision_variables().
Script packages_variables(const config::Config& config);

}  // namespace remote::servers
