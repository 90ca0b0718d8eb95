#include "servers/packages.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

bool is_local(const std::string& place) {
  return place.find("://") == std::string::npos;
}

// Whether the project itself can be installed.
bool describes_a_package(const std::string& pyproject) {
  for (const std::string& raw : split(pyproject, '\n')) {
    const std::string_view line = trim(raw);
    if (line.starts_with("[project]") || line.starts_with("[build-system]") ||
        line.starts_with("[tool.poetry]")) {
      return true;
    }
  }
  return false;
}

void add_requirements(Sha256& digest, const fs::path& file, std::set<fs::path>& seen) {
  const fs::path path = file.lexically_normal();
  if (!seen.insert(path).second) {
    return;
  }
  const std::string text = read_file_if_there(path).value_or("");
  digest.add_field(text);
  for (const std::string& line : split(text, '\n')) {
    for (const std::string_view option : {"-r", "--requirement", "-c", "--constraint"}) {
      if (!line.starts_with(option)) {
        continue;
      }
      std::string_view name = std::string_view(line).substr(option.size());
      if (name.starts_with('=')) {
        name.remove_prefix(1);
      } else if (option.starts_with("--") && !name.starts_with(' ')) {
        continue;
      }
      name = trim(name.substr(0, name.find(" #")));
      if (!name.empty() && is_local(std::string(name))) {
        add_requirements(digest, path.parent_path() / name, seen);
      }
    }
  }
}

void add_wheels(Sha256& digest, const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const auto size = entry->is_regular_file(ignored) ? entry->file_size(ignored) : 0;
    found.push_back(entry->path().filename().string() + " " + std::to_string(size));
  }
  std::sort(found.begin(), found.end());
  for (const std::string& file : found) {
    digest.add_field(file);
  }
}

}  // namespace

PackageSource package_source(const config::Config& config) {
  if (fs::exists(config.project / "Pipfile")) {
    return PackageSource::pipenv;
  }
  if (fs::exists(config.project / "requirements.txt")) {
    return PackageSource::requirements;
  }
  const auto pyproject = read_file_if_there(config.project / "pyproject.toml");
  return pyproject && describes_a_package(*pyproject) ? PackageSource::pyproject : PackageSource::none;
}

std::string to_string(PackageSource source) {
  switch (source) {
    case PackageSource::pipenv:
      return "pipenv";
    case PackageSource::requirements:
      return "requirements";
    case PackageSource::pyproject:
      return "pyproject";
    case PackageSource::none:
      break;
  }
  return "none";
}

std::string packages_digest(const config::Config& config) {
  const config::Python& python = config.python;
  const PackageSource source = package_source(config);
  Sha256 digest;
  digest.add_field("packages 1").add_field(to_string(source)).add_field(setup_digest(config));
  std::set<fs::path> seen;
  switch (source) {
    case PackageSource::pipenv:
      digest.add_field(read_file(config.project / "Pipfile"));
      digest.add_field(read_file_if_there(config.project / "Pipfile.lock").value_or(""));
      break;
    case PackageSource::requirements:
      add_requirements(digest, config.project / "requirements.txt", seen);
      break;
    case PackageSource::pyproject:
      for (const char* file : {"pyproject.toml", "setup.cfg", "setup.py"}) {
        digest.add_field(read_file_if_there(config.project / file).value_or(""));
      }
      break;
    case PackageSource::none:
      return digest.hex();  // pip's options decide nothing
  }
  digest.add_field(python.index_url.value_or("")).add_field(python.no_index ? "no index" : "");
  for (const std::string& url : python.extra_index_urls) {
    digest.add_field("extra").add_field(url);
  }
  for (const std::string& place : python.find_links) {
    digest.add_field("links").add_field(place);
    if (is_local(place) && !place.starts_with('/') && !place.starts_with('~')) {
      add_wheels(digest, config.project / place);
    }
  }
  for (const std::string& file : python.constraints) {
    digest.add_field("constraint").add_field(file);
    if (is_local(file)) {
      add_requirements(digest, config.project / file, seen);
    }
  }
  return digest.hex();
}

Script packages_variables(const config::Config& config) {
  const config::Python& python = config.python;
  std::vector<std::string> options;
  for (const std::string& place : python.find_links) {
    options.insert(options.end(), {"--find-links", place});
  }
  for (const std::string& place : python.constraints) {
    options.insert(options.end(), {"--constraint", place});
  }
  Script script;
  script.set("PACKAGES_DIGEST", packages_digest(config))
      .set("KIND", to_string(package_source(config)))
      .set("LOCKED", fs::exists(config.project / "Pipfile.lock") ? "1" : "")
      .set("INDEX_URL", python.index_url.value_or(""))
      .set("EXTRA_INDEX_URLS", join(python.extra_index_urls, " "))
      .set("NO_INDEX", python.no_index ? "1" : "")
      .call("set --", options)
      .add("pip_options.sh");
  return script;
}

}  // namespace remote::servers
