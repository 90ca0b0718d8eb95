#pragma once

#include <optional>
#include <set>
#include <string>

#include "config/config.hpp"
#include "wire/provision.hpp"
#include "wire/start.hpp"

// The Python environment of a project on a server, and the packages in it: where it is, how commands enter
// it, and the requests to create it.

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

// Returns the same environment for the agent, which needs no shell to enter it; nullopt if there is a
// prologue.
std::optional<wire::PythonEnvironment> python_environment(const config::Config& config,
                                                          const config::Server& server,
                                                          const std::string& tree = {});
wire::PythonEnvironment container_environment(const config::Config& config, const config::Server& server,
                                              const std::string& tree = {});

// The sh text that runs the user's prologue, which activation() begins with; empty where there is none. Where
// it failed, __failed is its exit code afterwards.
std::string prologue(const config::Config& config, const config::Server& server);

// All that decides which packages are installed.
struct PackageSources {
  // Computed from the files (with those that requirements name by -r and -c), pip's options, the environment,
  // and the wheels in find_links folders of the project.
  std::string digest;
  std::set<std::string> server_places;  // as in PackageFiles
};

// The text of activation() or prologue() with the files that it sources: the agent does not have them.
std::string inline_files(std::string text);

// The environment's folder on the server, as remote_path_word() takes it. For `system` a folder that only
// holds records.
std::string environment_folder(const config::Config& config, const config::Server& server);

// The folder on the server for what we keep there ourselves, as remote_path_word() takes it.
std::string scripts_folder(const config::Config& config, const config::Server& server);

// Variables of a request, which must not be logged. Throws Error (usage) for those that no program can have.
std::vector<wire::Variable> to_wire(const Env& env);

// What setup makes, as a digest: another manager, version or option makes another environment.
std::string setup_digest(const config::Config& config);

// The environment, as the agent prepares it.
wire::ManagedPython managed_python(const config::Config& config, const config::Server& server,
                                   bool with_prologue);

wire::PackagesStamp packages_stamp(const config::Config& config, const config::Server& server,
                                   const PackageSources& sources);

// `default_version` is used if configs.yaml has no version.
wire::Setup setup_request(const config::Config& config, const std::string& default_version, bool force);

// "3.11": this machine's python3, for conda when configs.yaml names no version; empty when there is none.
std::string local_python_version();

PackageSource package_source(const config::Config& config);

// Why a program of the project cannot run.
constexpr const char* no_environment = "the project's Python environment, with its packages, is not there";

// The possible folders of the environment that a program of the project needs for its packages. Empty: it has
// no packages, or they may be in another place.
std::vector<std::string> needed_environments(const config::Config& config, const config::Server& server);

PackageSources package_sources(const config::Config& config);

wire::Packages packages_request(const config::Config& config);

}  // namespace remote::servers
