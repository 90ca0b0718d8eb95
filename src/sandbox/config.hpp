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

// What became of configs.yaml.
enum class SandboxConfigState {
  created,    // there was none
  updated,    // the sandbox wrote it, nobody changed it, and it now has the new servers or ports
  names_all,  // it has every server with its port
  lacks_some  // it is the user's own: it is left alone, and these servers are to be added or changed
};

// A training to try the servers with: what configs.yaml says of it, and its file.
enum class Sample {
  none,  // none was asked for
  made,  // the file was written
  kept   // there is a file of that name, which is taken as it is
};

// A file by its name (generated): entry.sh, what sessions of the servers run, or train.py of sample/tiny.
// Throws std::logic_error for another.
std::string_view sample_file(std::string_view name);

// Writes train.py into the project's folder, if there is none.
Sample write_sample(const Sandbox& sandbox);

struct SandboxConfigResult {
  SandboxConfigState state = SandboxConfigState::names_all;
  std::vector<SandboxServer> lacking;  // with lacks_some
  std::optional<std::string> problem;  // with lacks_some: why the file could not be read
};

// The `servers:` part of configs.yaml for these servers, ending with a newline.
std::string sandbox_servers_yaml(const std::vector<SandboxServer>& servers, const std::string& user);

// The ports at which configs.yaml looks for practice servers, by name; none where it cannot be read.
std::map<std::string, int> ports_in_config(const Sandbox& sandbox);

// Those of `servers` that a configuration does not reach: no entry has 127.0.0.1 and their port.
std::vector<SandboxServer> not_in_config(const config::Config& config,
                                         const std::vector<SandboxServer>& servers);

// Writes configs.yaml (and exclude.txt, where there is none) if there is none yet, brings it up to date if it
// is as the sandbox wrote it, or as `remote init` did without a server, and otherwise only looks at it.
// `sample`: where it is the sandbox's own, it says that launches run train.py.
SandboxConfigResult settle_config(const Sandbox& sandbox, const std::vector<SandboxServer>& servers,
                                  bool sample = false);

enum class UndoneConfig {
  removed,   // the sandbox had made it
  restored,  // `remote init` had made it: it is again as it was before
  left       // it was changed since, or there is none
};

// Takes back what settle_config() did to configs.yaml, if nobody has changed the file since. Call before
// Sandbox::purge().
UndoneConfig undo_config(const Sandbox& sandbox);

}  // namespace remote::sandbox
