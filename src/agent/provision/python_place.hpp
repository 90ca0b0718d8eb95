#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"
#include "wire/provision.hpp"

namespace remote::agent {

constexpr const char* setup_stamp_name = ".remote-setup";
std::string name_packages_stamp(const std::string& project_key);

// The folders of a Python environment. Its programs are looked up with the environment after the user's
// prologue.
class PythonPlace {
 public:
  PythonPlace(const Host& host, const wire::ManagedPython& python);

  const wire::ManagedPython& python() const { return python_; }
  const Path& home() const { return home_; }
  const Path& project() const { return project_; }
  const Path& scripts() const { return scripts_; }
  const Path& folder() const { return folder_; }
  const Path& conda() const { return conda_; }
  Path setup_stamp() const { return stamps_ / setup_stamp_name; }
  Path packages_stamp() const { return stamps_ / name_packages_stamp(python_.project_key); }
  // The digest of everything that the packages would be installed from now.
  std::string packages_digest(const Host& host) const;

  // The interpreter; "" if there is none.
  Path find_interpreter(const Host& host) const;
  bool is_set_up(const Host& host) const;
  // Creates and removes a file in each folder, so that NFS drops its cache, because another machine may have
  // just created the environment.
  void refresh() const;

 private:
  const wire::ManagedPython& python_;
  Path home_;
  Path project_;
  Path scripts_;
  Path conda_;
  Path folder_;
  Path stamps_;
};

// Stamps are files that record a finished step by the digest of its settings.
bool has_stamp(const Path& path, std::string_view digest);
// Throws ProvisionError.
void write_stamp(const Path& path, const std::vector<std::string>& lines);

// Creates a file that all users can read. Returns false on failure.
bool put_open_file(const Path& path, std::string_view text);
// Like put_open_file(), but replaces the file by rename(2), so readers see either the old or the new content.
bool replace_open_file(const Path& path, std::string_view text);
// Creates a folder and its parents, accessible to all users. Existing folders are not changed.
bool make_open_folders(const Path& path);

// These return "" if there is none. choose_program() returns the first path that is an executable file.
Path choose_program(std::initializer_list<Path> paths);
Path find_uv(const Host& host);

// The packages of the distribution that are not installed.
std::vector<std::string> find_missing_packages(const Host& host, const std::vector<std::string>& packages);

}  // namespace remote::agent
