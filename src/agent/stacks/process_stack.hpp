#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/stacks/python_processes.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

// Reads the stacks of processes. Processes are only read, except that faulthandler_signal goes to those that
// catch it and have the file for its output open: they were started with --enable-stacks.
class StackReader {
 public:
  // Searches for py-spy on the host's PATH, then in the environment that the sh text `activate` enters; never
  // on the PATH of a process that is read.
  StackReader(const Host& host, const std::string& activate);

  // `job_folder`: the folder of its job.
  wire::ProcessStack read(const PythonProcess& process, const std::string& id, const Path& job_folder) const;
  // The kernel's data about a process that is not a Python process.
  wire::ProcessStack read_other(int pid, const std::string& id) const;

 private:
  // Return false, and add the reason to the stack, if they fail.
  bool ask_py_spy(wire::ProcessStack& stack) const;
  bool ask_by_signal(wire::ProcessStack& stack, const Path& file) const;
  void read_kernel(wire::ProcessStack& stack) const;

  const Host& host_;
  Path py_spy_;  // "": there is none
};

}  // namespace remote::agent
