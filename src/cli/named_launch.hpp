#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/launch.hpp>

#include "cli/context.hpp"

// Named launches in configs.yaml, and the source of each setting of a launch.

namespace remote::cli {

// Whether the project of this command line has a launch with this name.
bool is_launch(Context& context, const std::vector<std::string>& words, const std::string& name);

// The settings in configs.yaml for this launch ("": for all launches). `command`: name of the subcommand.
// Throws Error (usage) if the name is in the wrong position, or was probably mistyped.
LaunchDefaults launch_defaults_of(Context& context, const std::string& command, const std::string& launch);

// For --dry-run: what would start, and the source of each setting: "configs.yaml:12 launches.full", "command
// line" or "default". `command` has already parsed its options; `given`: its variables; `python`: whether it
// starts Python.
void show_plan(Context& context, const Plan& plan, const CLI::App& command, const Env& given,
               const LaunchDefaults& usual, bool python);

}  // namespace remote::cli
