#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "sandbox/sandbox.hpp"

// The sandbox's servers in a project's configs.yaml.

namespace remote::sandbox {

// What was done with configs.yaml.
enum class SandboxConfigState {
  created,    // it did not exist
  updated,    // the sandbox wrote it and nobody changed it, so it was updated with the new servers or ports
  names_all,  // it already has every server with its port
  lacks_some  // it belongs to the user, so it is unchanged; some servers must be added or changed
};

// The sample training for trying the servers: whether its file was written.
enum class Sample {
  none,  // not requested
  made,  // the file was written
  kept   // a file with this name exists and is used
};

// An embedded file: entry.sh, which the servers' sessions run, or train.py of sample/tiny. Throws
// std::logic_error for other names.
std::string_view sample_file(std::string_view name);

// Writes train.py to the project's folder, if it does not exist.
Sample write_sample(const Sandbox& sandbox);

struct SandboxConfigResult {
  SandboxConfigState state = SandboxConfigState::names_all;
  std::vector<SandboxServer> lacking;  // for lacks_some
  std::optional<std::string> problem;  // for lacks_some: why the file could not be read
};

// The `servers:` part of configs.yaml for these servers, with a newline at the end.
std::string sandbox_servers_yaml(const std::vector<SandboxServer>& servers, const std::string& user);

// The ports of practice servers in configs.yaml, by name; empty if it cannot be read.
std::map<std::string, int> ports_in_config(const Sandbox& sandbox);

// Those of `servers` that a configuration does not contain, with 127.0.0.1 and their port.
std::vector<SandboxServer> not_in_config(const config::Config& config,
                                         const std::vector<SandboxServer>& servers);

// Creates configs.yaml (and exclude.txt if it does not exist). If configs.yaml exists and is as the sandbox
// wrote it, or as `remote init` wrote it without a server, updates it; otherwise only checks it. `sample`: if
// the file is the sandbox's own, launches run train.py.
SandboxConfigResult settle_config(const Sandbox& sandbox, const std::vector<SandboxServer>& servers,
                                  bool sample = false);

enum class UndoneConfig {
  removed,   // the sandbox had created it
  restored,  // `remote init` had created it, and it is as it was before
  left       // it was changed since, or does not exist
};

// Undoes the changes of settle_config() to configs.yaml, if nobody has changed the file since. Call it before
// Sandbox::purge().
UndoneConfig undo_config(const Sandbox& sandbox);

}  // namespace remote::sandbox
