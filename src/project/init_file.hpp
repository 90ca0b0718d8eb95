#pragma once

#include <map>
#include <string>
#include <vector>

#include <remote/job.hpp>

#include "project/core.hpp"

namespace remote::project {

// The shared file of a launch, from its creation until the start. Not thread-safe.
class InitFile {
 public:
  // Creates the launch's folder on the first of these servers, then checks whether all others see it.
  // `folder`: absolute, "~/…", or relative to the project's folder; "": the folder of the jobs, which servers
  // with one home share. Throws Error, after reporting each server that does not see it (PartsFailed) and
  // removing it.
  InitFile(Core& core, const std::vector<config::Server>& servers, const std::string& folder,
           const JobId& launch);
  // Removes the folder, unless keep() was called.
  ~InitFile();
  InitFile(const InitFile&) = delete;
  InitFile& operator=(const InitFile&) = delete;

  // The path of the launch's folder on a server.
  const std::string& folder_on(const std::string& server) const { return folders_.at(server); }
  // Leaves the cleanup to the jobs.
  void keep() { kept_ = true; }

 private:
  std::string place_on(const config::Server& server) const;
  void make(const std::vector<config::Server>& servers);
  void drop();

  Core& core_;
  const config::Server first_;
  const std::string folder_;  // as given
  const JobId launch_;
  std::map<std::string, std::string> folders_;  // by server
  bool kept_ = false;
};

}  // namespace remote::project
