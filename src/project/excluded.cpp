#include "project/excluded.hpp"

#include <set>

#include "config/config.hpp"
#include "config/project_files.hpp"
#include "servers/package_files.hpp"

namespace remote::project {
namespace fs = std::filesystem;

std::vector<servers::SkippedPart> skipped_parts(const fs::path& project, const Cancel& cancel) {
  return servers::skipped_parts(config::load(project), cancel);
}

std::vector<std::string> excluded(const fs::path& project, const std::vector<std::string>& names,
                                  const Cancel& cancel) {
  std::set<std::string> here;
  for (const std::string& name : names) {
    const fs::path path = fs::path(name).lexically_normal();
    std::error_code ignored;
    if (path.empty() || path.is_absolute() || *path.begin() == ".." || *path.begin() == ".remote") {
      continue;
    }
    const auto type = fs::status(project / path, ignored).type();
    if (type == fs::file_type::directory) {
      here.insert((path / "").string());
    } else if (type == fs::file_type::regular) {
      here.insert(path.string());
    }
  }
  if (here.empty()) {
    return {};
  }
  const auto found = servers::select_among(config::load(project), here, cancel).excluded;
  return {found.begin(), found.end()};
}

bool requires_module(const fs::path& project, const std::string& module) {
  const auto text = config::read_project_text(config::load(project), "requirements.txt");
  return text && servers::requires_module(*text, module);
}

}  // namespace remote::project
