#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/trust.hpp>

#include "config/config.hpp"

// What a project asks of this machine, and what of it the user has allowed.

namespace remote::config {

// Where this user's `remote` keeps what no project may bring or change: $XDG_STATE_HOME/remote.
std::filesystem::path state_folder();

// Whether `path` is `folder` or lies in it. Both are taken as they are written.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

// What the user has allowed to one project: lines of digests in $XDG_STATE_HOME/remote/trusted, outside every
// project. A project is known by its canonical path. Several processes may use the file; a store reads it
// when it is first asked, and is used by one thread at a time.
class TrustStore {
 public:
  explicit TrustStore(const std::filesystem::path& project);

  // Throw Error where the file cannot be read, or others may write to it.
  bool allows(const Demand& demand) const;
  // Those that were not allowed.
  std::vector<Demand> not_allowed(std::vector<Demand> demands) const;
  // Throw Error where the file cannot be written.
  void allow(const std::vector<Demand>& demands);
  void forget();  // all that this project was allowed
  // Allows each demand of `after` if the one at its place in `before` was allowed; and then, instead of it.
  void allow_also(const std::vector<Demand>& before, const std::vector<Demand>& after);
  void replace(const std::vector<Demand>& before, const std::vector<Demand>& after);

 private:
  std::string digest(const Demand& demand) const;

  std::string project_;
  std::filesystem::path file_;
  mutable std::optional<std::vector<std::string>> lines_;  // once it was read
};

// What the settings make this machine do, in the order of the file.
std::vector<Demand> demands_of(const Config& config);

// Calls `write`, which adds a host key to `file`: its content is now `before` and will be `after`. Passwords
// that were allowed for servers with these host keys stay allowed, because the key was added here.
void add_host_key(const Config& config, const std::filesystem::path& file, const std::string& before,
                  const std::string& after, const std::function<void()>& write);

// Those of them that say where files of this machine are written, also without a server.
std::vector<Demand> folder_demands(const Config& config);

// Throws Error (usage) where one of the folders in which remote removes what is old is a link: nobody but a
// stranger to the project makes such a link.
void check_own_folders(const Config& config);

// Why the project's folder, its .remote or configs.yaml cannot be believed; nullopt: they are the user's own.
std::optional<Demand> folder_demand(const std::filesystem::path& project);

// Throws Error (usage) for a project that others can change, unless the user has allowed it.
void check_folder(const std::filesystem::path& project);

}  // namespace remote::config
