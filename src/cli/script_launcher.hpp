#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace remote::cli {

// A launcher, such as torchrun, that is started by a file in the project.
struct ScriptLauncher {
  std::string file;  // "train.sh", "make train"
  std::string name;  // "torchrun", "-m torch.distributed.run"
  std::string line;  // the line that starts it
};

// The launcher that the command starts through a shell script, a Python file or a Makefile target in the
// project, without the addresses of other servers; nullopt if none was found.
std::optional<ScriptLauncher> find_script_launcher(const std::filesystem::path& project,
                                                   std::string_view command);
// The name of the launcher that the command starts, itself or through a file in the project, without the
// addresses of other servers; "" if there is none.
std::string find_own_launcher(const std::filesystem::path& project, std::string_view command);

}  // namespace remote::cli
