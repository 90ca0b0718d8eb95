#pragma once

#include <string>

namespace remote {

// Something that a project makes this machine do or give away, or a reason not to believe the project at all.
// It holds only once the user has allowed it; another value is asked about anew.
struct Demand {
  enum class Kind {
    folder,            // others can change the project: `value` says who
    password_command,  // `value` runs here; what it prints goes to `to` as the password
    password_env,      // the variable `value` goes to `to` as the password
    known_hosts,       // host keys are written to the file `value`, outside the project
    local_folder,      // `value`, where files are written here, leads to `to`, outside the project
    link,              // the symbolic link `value` is sent as what it leads to, `to`, outside the project
    sandbox_key,  // never asked about: `value` is a key file of the sandbox, `to` the digest of its content
  };
  Kind kind = Kind::folder;
  std::string server;  // whose setting it is; or ""
  std::string value;
  std::string to;
  std::string place;  // "configs.yaml:12"; or ""
};

}  // namespace remote
