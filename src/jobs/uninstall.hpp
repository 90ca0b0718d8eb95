#pragma once

#include <string>
#include <vector>

#include <remote/requests.hpp>

#include "ssh/connection.hpp"

// Removes everything that remote has installed on a server.

namespace remote::jobs {

struct UninstallAnswer {
  std::vector<UninstallResult::RunningJob> running{};  // if there are any, nothing is removed
  std::vector<std::string> removed{};                  // in a dry run: would be removed
  std::vector<UninstallResult::Leftover> left{};
};

// The folders shared by all users of a server where installations, leases and jobs leave files.
const std::vector<std::string>& shared_folders();

struct UninstallOrder {
  RemoteFolder folder;
  std::string agent_folder{};  // from configs.yaml, or empty
  bool dry_run = false;
  std::vector<std::string> shared = shared_folders();
};

// Throws Error and Interrupted.
UninstallAnswer uninstall(ssh::Connection& connection, const UninstallOrder& order, const Cancel& cancel);

}  // namespace remote::jobs
