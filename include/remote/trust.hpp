#pragma once

#include <string>

namespace remote {

// Something that a project makes this machine run or disclose, or a reason not to trust the project at all.
// It takes effect only after the user has allowed it; a changed value needs a new confirmation.
struct Demand {
  enum class Kind {
    folder,            // others can change the project: `value` says who
    password_command,  // `value` runs here; its output is sent to `to` as the password
    password_env,      // the variable `value` is sent to `to` as the password
    known_hosts,       // host keys are written to the file `value`, outside the project
    local_folder,      // `value`, a folder that files are written to, leads to `to`, outside the project
    link,              // the symbolic link `value` is sent as its target `to`, outside the project
    sandbox_key,  // never prompted for: `value` is a key file of the sandbox, `to` the digest of its content
  };
  Kind kind = Kind::folder;
  std::string server;  // the server that the setting belongs to; or ""
  std::string value;
  std::string to;
  std::string place;  // "configs.yaml:12"; or ""
};

}  // namespace remote
