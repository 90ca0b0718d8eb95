#pragma once

#include <optional>
#include <set>
#include <string>

#include "config/config.hpp"
#include "wire/provision.hpp"
#include "wire/start.hpp"

// The Python environment of a project on a server, and its packages: where it is, how commands enter it, and
// the requests to create it.

namespace remote::servers {

// POSIX shell text that enters the environment. It sets PATH, the variables of conda and virtualenv, and
// PYTHONPATH with the project and its src. Put it before a command; it works in any folder. If there is no
// environment yet, it does not change PATH. It sets no options, never exits the shell, and starts no process
// (except for conda's own hooks). `tree` is the digest of a frozen launch's tree, which replaces the project
// in PYTHONPATH.
std::string activation(const config::Config& config, const config::Server& server,
                       const std::string& tree = {});

// Like activation(), but for the inside of a container, which has its own Python, so it only sets PYTHONPATH.
std::string container_activation(const config::Config& config, const config::Server& server,
                                 const std::string& tree = {});

// The same environment for the agent, which does not need a shell to enter it; nullopt if there is a
// prologue.
std::optional<wire::PythonEnvironment> python_environment(const config::Config& config,
                                                          const config::Server& server,
                                                          const std::string& tree = {});
wire::PythonEnvironment container_environment(const config::Config& config, const config::Server& server,
                                              const std::string& tree = {});

// The shell text that runs the user's prologue, which is the beginning of activation(); empty if there is
// none. If the prologue fails, __failed is set to its exit code.
std::string prologue(const config::Config& config, const config::Server& server);

// Everything that determines which packages are installed.
struct PackageSources {
  // Computed from the files (including those that requirements refer to with -r and -c), pip's options, the
  // environment, and the wheels in find_links folders of the project.
  std::string digest;
  std::set<std::string> server_places;  // as in PackageFiles
};

// The text of activation() or prologue() with the sourced files inserted, because the agent does not have
// them.
std::string inline_files(std::string text);

// The environment's folder on the server, as a word for remote_path_word(). For `system`, it is a folder that
// only holds records.
std::string environment_folder(const config::Config& config, const config::Server& server);

// The folder on the server for remote's own files, as a word for remote_path_word().
std::string scripts_folder(const config::Config& config, const config::Server& server);

// The variables of a request, which must not be logged. Throws Error (usage) if a variable is not possible.
std::vector<wire::Variable> to_wire(const Env& env);

// A digest of what setup creates: another manager, version or option results in another environment.
std::string setup_digest(const config::Config& config);

// The environment in the form for the agent, which prepares it.
wire::ManagedPython managed_python(const config::Config& config, const config::Server& server,
                                   bool with_prologue);

wire::PackagesStamp packages_stamp(const config::Config& config, const config::Server& server,
                                   const PackageSources& sources);

// `default_version` is used if configs.yaml has no version.
wire::Setup setup_request(const config::Config& config, const std::string& default_version, bool force);

// The version of this machine's python3, "3.11", for conda if configs.yaml has no version; empty if there is
// none.
std::string local_python_version();

PackageSource package_source(const config::Config& config);

// The reason why a program of the project cannot run.
constexpr const char* no_environment = "the project's Python environment, with its packages, is not there";

// The possible folders of the environment that a program of the project needs for its packages. Empty: it has
// no packages, or they may be elsewhere.
std::vector<std::string> needed_environments(const config::Config& config, const config::Server& server);

PackageSources package_sources(const config::Config& config);

wire::Packages packages_request(const config::Config& config);

}  // namespace remote::servers
