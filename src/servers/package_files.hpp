#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

#include "config/config.hpp"

namespace remote::servers {

// A line of a requirements file that refers to a file or folder.
struct RequirementPlace {
  enum class Kind { requirements, links, package, editable };
  Kind kind = Kind::package;
  std::string path;

  friend bool operator==(const RequirementPlace&, const RequirementPlace&) = default;
};

// The files and folders that a requirements file refers to, parsed like pip does: with continued lines,
// comments and quoted options. Excludes those that pip downloads, and paths with a variable.
std::vector<RequirementPlace> requirement_places(std::string_view text);

// Whether a line of a requirements file starts with the name of this module, with pip's rules for comparing
// names.
bool requires_module(std::string_view text, std::string_view module);

// The input that determines which packages pip installs.
struct PackageFiles {
  // The project's files, one line each: "sha256 HEX NAME", or for a large one "size BYTES NAME" and "end HEX
  // NAME", the digest of its end. This includes packages that are folders of the project: all files of a
  // package that is copied, but only the description files of an editable one.
  std::set<std::string> lines;
  // Files and folders outside the project. They belong to the server and are not read here. Absolute, with
  // "~/", or relative to the project.
  std::set<std::string> server_places;
};

// Throws Error (usage) for a file that cannot be read as text.
PackageFiles package_files(const config::Config& config, PackageSource source);

}  // namespace remote::servers
