#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/events.hpp>

#include "config/config.hpp"

namespace remote::servers {

// A line of a requirements file that names a file or folder.
struct RequirementPlace {
  enum class Kind { requirements, links, package, editable };
  Kind kind = Kind::package;
  std::string path;

  friend bool operator==(const RequirementPlace&, const RequirementPlace&) = default;
};

// The files and folders that a requirements file names, as pip reads it: lines that continue, comments,
// quoted words of options. Not those that pip fetches, nor paths with a variable.
std::vector<RequirementPlace> requirement_places(std::string_view text);

// Whether a line of a requirements file begins with the name of this module, as pip compares names.
bool requires_module(std::string_view text, std::string_view module);

// What decides what pip installs.
struct PackageFiles {
  // The files of the project, a line each: "sha256 HEX NAME", or "size BYTES NAME" for an archive. With those
  // of packages that are folders of the project: all files of a package that is copied, and what describes
  // one that is editable.
  std::set<std::string> lines;
  // Files and folders outside the project: the server's own, which are not read here. Absolute, with "~/", or
  // relative to the project.
  std::set<std::string> server_places;
};

// Throws Error (usage) for a file that cannot be read as text.
PackageFiles package_files(const config::Config& config, PackageSource source);

}  // namespace remote::servers
