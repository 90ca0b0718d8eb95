#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// The process name of a guard, as in /proc/PID/comm.
inline constexpr const char* guard_name = "remote-guard";

// The guard of a job (guard.hpp). Its working directory is the job's folder.
struct GuardProcess {
  int pid = 0;
  std::string id;  // the job's id
  Path project;
};

// Finds this user's guards in all projects.
std::vector<GuardProcess> find_guards(const Host& host);

}  // namespace remote::agent
