#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/path.hpp"

// The machine that the agent runs on. All modules access files and programs through this class, so that tests
// can replace folders and programs.

namespace remote::agent {

struct Host {
  Path root;  // prefix of the system's file paths; "" on a real server
  Path home;
  Path shared_memory = "/dev/shm";
  // The environment of programs that the agent starts.
  std::map<std::string, std::string> environment;
  // The hidden variables that of_this_process() removed from the environment, and the original PATH and
  // LC_ALL.
  std::map<std::string, std::string> set_aside{};
  // Set when the client disconnects; running programs are then killed. May be null.
  std::shared_ptr<std::atomic<bool>> cancelled;

  // The real machine, with the environment of this process, but without the variables that change what other
  // programs print. REMOTE_HID_FUNCTIONS holds bash's exported functions. LC_ALL is C, and the system's
  // folders are added to PATH.
  static Host of_this_process();

  bool is_cancelled() const { return cancelled && *cancelled; }
  // For work that must be completed even if the client disconnects.
  Host without_cancel() const;
  // The path of a system file, such as "/proc/meminfo".
  Path system(std::string_view path) const { return root.empty() ? Path(path) : root / path.substr(1); }
  // Expands a path of a request: "~", "~/x" and "x" are relative to the home directory.
  Path expand(std::string_view path) const;
  // "" if it is not set.
  std::string variable(const std::string& name) const;
  // "NAME=VALUE" of each variable.
  std::vector<std::string> list_variables() const;
  // Like list_variables(), but for the user's own programs: with the account's PATH, and with each hidden
  // variable NAME as REMOTE_HID_NAME, which lib/environment.sh restores. ENV, SHELLOPTS and BASHOPTS keep
  // their names, so they affect scripts as usual.
  std::vector<std::string> list_job_variables() const;
  // Like list_job_variables(), but for foreground processes: SHELLOPTS and similar variables are hidden as
  // well, and LC_ALL is the account's.
  std::vector<std::string> list_account_variables() const;
  // The first program of this name on PATH; "" if there is none.
  Path find_program(std::string_view name) const;
};

}  // namespace remote::agent
