#pragma once

#include <filesystem>

#include <sys/types.h>

#include "wire/launch.hpp"

namespace remote::test {

// A launch on the simulated servers "a", the coordinator, and "b", on a free port of this machine.
wire::LaunchSpec launch_of_two();

// The recorded pid in a job's folder.
pid_t read_lifeline_pid(const std::filesystem::path& job_folder);
// Kills the recorded lifeline together with its watchdog, which would otherwise take over.
void kill_lifeline(const std::filesystem::path& job_folder);

}  // namespace remote::test
