#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/stacks/python_processes.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

// Reads the stacks of processes, without changing the processes. The only exception is faulthandler_signal,
// which is sent to those that catch it and have its output file open, because they were started with
// --enable-stacks.
class StackReader {
 public:
  // Searches for py-spy on the host's PATH, then in the environment that the shell text `activate` enters,
  // but never on the PATH of a process that is read.
  StackReader(const Host& host, const std::string& activate);

  // `job_folder` is the folder of the process's job.
  wire::ProcessStack read(const PythonProcess& process, const std::string& id, const Path& job_folder) const;
  // The kernel's data about a process that is not a Python process.
  wire::ProcessStack read_other(int pid, const std::string& id) const;

 private:
  // On failure, these return false and add the reason to the stack.
  bool ask_py_spy(wire::ProcessStack& stack) const;
  bool ask_by_signal(wire::ProcessStack& stack, const Path& file) const;
  void read_kernel(wire::ProcessStack& stack) const;

  const Host& host_;
  Path py_spy_;  // "" if there is none
};

}  // namespace remote::agent
