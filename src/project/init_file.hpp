#pragma once

#include <map>
#include <string>
#include <vector>

#include <remote/job.hpp>

#include "project/core.hpp"

namespace remote::project {

// The shared file of a launch, from its making to the start. Not to be used by several threads.
class InitFile {
 public:
  // Makes the launch's folder on the first of these servers, and then looks on all others whether they see
  // it. `folder` is absolute, "~/…", or within the project's folder; "": the folder of the jobs, which all
  // servers have in common where they have one home. Throws Error, after telling of each server that does not
  // see it (PartsFailed); then nothing is left of it.
  InitFile(Core& core, const std::vector<config::Server>& servers, const std::string& folder,
           const JobId& launch);
  // Removes it, unless keep() was called.
  ~InitFile();
  InitFile(const InitFile&) = delete;
  InitFile& operator=(const InitFile&) = delete;

  // Where the launch's folder is, on a server.
  const std::string& folder_on(const std::string& server) const { return folders_.at(server); }
  // From now on its jobs look after it.
  void keep() { kept_ = true; }

 private:
  std::string place_on(const config::Server& server) const;
  void make(const std::vector<config::Server>& servers);
  void drop();

  Core& core_;
  const config::Server first_;
  const std::string folder_;  // as it was given
  const JobId launch_;
  std::map<std::string, std::string> folders_;  // by server
  bool kept_ = false;
};

}  // namespace remote::project
