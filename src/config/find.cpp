#include <system_error>

#include <remote/error.hpp>

#include "config/config.hpp"

namespace remote::config {
namespace fs = std::filesystem;

fs::path find_project(const fs::path& start) {
  std::error_code ignored;
  fs::path folder = fs::absolute(start).lexically_normal();
  for (;;) {
    if (fs::exists(folder / ".remote/configs.yaml", ignored)) {
      return folder;
    }
    const fs::path parent = folder.parent_path();
    if (parent.empty() || parent == folder) {
      break;
    }
    folder = parent;
  }
  throw Error::usage("no project here",
                     "there is no .remote/configs.yaml in " + start.string() + " or in a folder above it")
      .mended_by(Remedy::make_project);
}

}  // namespace remote::config
