#include "config/project_files.hpp"

#include "base/beneath.hpp"
#include "base/paths.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

struct Place {
  fs::path folder;
  fs::path name;
};

// If `.remote` is a link to another place, the user has allowed that (see folder_demands): its files are
// there.
Place place_in(const fs::path& project, const fs::path& name) {
  const fs::path settings = project / ".remote";
  if (!name.empty() && *name.begin() == ".remote" && is_link(settings)) {
    return {settings, name.lexically_relative(".remote")};
  }
  return {project, name};
}

std::optional<std::string> read_text(const Place& place) {
  auto text = read_beneath(place.folder, place.name);
  return text ? std::optional(decode_text(std::move(*text), place.folder / place.name)) : std::nullopt;
}

}  // namespace

std::optional<std::string> read_project_text(const Config& config, const std::string& name) {
  return read_text(place_in(config.project, name));
}

bool has_project_file(const Config& config, const std::string& name) {
  const Place place = place_in(config.project, name);
  return static_cast<bool>(open_beneath(place.folder, place.name));
}

std::optional<std::string> read_exclude_file(const Config& config) {
  // `rerun` sends the old code with the current patterns.
  const fs::path project = config.file.empty() ? config.project : config.file.parent_path().parent_path();
  return read_text(place_in(project, config.exclude_file));
}

}  // namespace remote::config
