#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <remote/launch.hpp>

#include "cli/context.hpp"

// Launches that configs.yaml has by name, and where the settings of a launch come from.

namespace remote::cli {

// Whether the project of this command line has a launch of this name.
bool is_launch(Context& context, const std::vector<std::string>& words, const std::string& name);

// What configs.yaml says of this launch ("": of all). `command`: the subcommand's name. Throws Error (usage)
// where the name stands at the wrong place, or was probably mistyped.
LaunchDefaults launch_defaults_of(Context& context, const std::string& command, const std::string& launch);

// For --dry-run: what would start, and where its settings come from: "configs.yaml:12 launches.full",
// "command line" or "default". `command` has read its options, and `given` are its variables; `python`: what
// it starts is Python.
void show_plan(Context& context, const Plan& plan, const CLI::App& command, const Env& given,
               const LaunchDefaults& usual, bool python);

}  // namespace remote::cli
