#pragma once

#include "agent/host/descriptor.hpp"
#include "agent/host/path.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"

namespace remote::agent {

// Locks an environment, so that only one process changes it. The lock is a file next to the environment,
// because several servers may share that folder under different paths.
class EnvironmentLock {
 public:
  // Waits for the lock. If no lock file can be created, continues without it. Throws ProvisionError.
  EnvironmentLock(Steps& steps, const PythonPlace& place);
  // Removes the file, unless it is in our own folder.
  ~EnvironmentLock();
  EnvironmentLock(const EnvironmentLock&) = delete;
  EnvironmentLock& operator=(const EnvironmentLock&) = delete;

  // Whether another process had the lock.
  bool has_waited() const { return has_waited_; }

 private:
  bool lock(const Path& path);
  bool is_current(const Path& path) const;

  Steps& steps_;
  Path removable_;  // "": the file is kept
  Descriptor file_;
  bool has_waited_ = false;
};

}  // namespace remote::agent
