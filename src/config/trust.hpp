#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/trust.hpp>

#include "config/config.hpp"

// What a project wants to do on this machine, and which of it the user has allowed.

namespace remote::config {

// The folder for this user's state that no project may provide or change: $XDG_STATE_HOME/remote.
std::filesystem::path state_folder();

// Whether `path` is `folder` or is inside it. Compares the paths as written.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

// What the user has allowed for one project, stored as lines of digests in $XDG_STATE_HOME/remote/trusted,
// outside every project. A project is identified by its canonical path. Several processes may use the file; a
// store reads it on first use, and is not thread-safe.
class TrustStore {
 public:
  explicit TrustStore(const std::filesystem::path& project);

  // Throw Error if the file cannot be read, or if other users can write to it.
  bool allows(const Demand& demand) const;
  // The demands that are not allowed.
  std::vector<Demand> not_allowed(std::vector<Demand> demands) const;
  // Throw Error if the file cannot be written.
  void allow(const std::vector<Demand>& demands);
  void forget();  // revokes everything that was allowed for this project
  // allow_also() allows each demand in `after` if the one at the same position in `before` was allowed;
  // replace() also revokes that one.
  void allow_also(const std::vector<Demand>& before, const std::vector<Demand>& after);
  void replace(const std::vector<Demand>& before, const std::vector<Demand>& after);

 private:
  std::string digest(const Demand& demand) const;

  std::string project_;
  std::filesystem::path file_;
  mutable std::optional<std::vector<std::string>> lines_;  // nullopt until the file is read
};

// What the settings want to do on this machine, in file order.
std::vector<Demand> demands_of(const Config& config);

// Calls `write`, which adds a host key to `file`, changing its content from `before` to `after`. Passwords
// that were allowed for servers with these host keys stay allowed, because remote itself added the key.
void add_host_key(const Config& config, const std::filesystem::path& file, const std::string& before,
                  const std::string& after, const std::function<void()>& write);

// Only the demands about where files are written on this machine, which also apply without a server.
std::vector<Demand> folder_demands(const Config& config);

// Throws Error (usage) if a folder that remote cleans up is a link: the user has no reason to create such a
// link.
void check_own_folders(const Config& config);

// Why the project's folder, its .remote or configs.yaml cannot be trusted; nullopt: only the user can change
// them.
std::optional<Demand> folder_demand(const std::filesystem::path& project);

// Throws Error (usage) if other users can change the project, unless the user has allowed that.
void check_folder(const std::filesystem::path& project);

}  // namespace remote::config
