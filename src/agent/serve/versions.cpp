#include "agent/serve/versions.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "wire/text.hpp"

namespace remote::agent {

namespace {

constexpr std::size_t other_versions = 1;
constexpr std::chrono::seconds longest_installation{24L * 60 * 60};

// The part of the ELF header that contains the architecture; "" for other files.
std::string read_architecture(const Path& program) {
  constexpr std::size_t length = 20;
  const std::string header = read_file(program, length).value_or("");
  const bool is_program = header.size() == length && header.starts_with(
                                                         "\x7f"
                                                         "ELF");
  return is_program ? header.substr(4, 2) + header.substr(18, 2) : "";
}

bool is_running(const Path& program, const Path& proc) {
  const std::vector<std::string> names = list_names(proc);
  return std::ranges::any_of(names, [&](const std::string& name) {
    const bool is_process = name.front() >= '0' && name.front() <= '9';
    return is_process && is_same_file(proc / name / "exe", program);
  });
}

void remove_interrupted(const Path& folder) {
  const std::time_t limit = std::time(nullptr) - longest_installation.count();
  for (const std::string& name : list_names(folder)) {
    const auto info = look_at(folder / name);
    if (name.starts_with("new.") && info && info->st_mtime < limit) {
      ::unlink((folder / name).c_str());
    }
  }
}

// Removes the folder of a version, which contains only files.
void remove_version(const Path& folder) {
  for (const std::string& name : list_names(folder)) {
    ::unlink((folder / name).c_str());
  }
  ::rmdir(folder.c_str());
}

}  // namespace

Path find_own_program() {
  return read_link("/proc/self/exe");
}

void remove_own_folder() {
  const Path program = find_own_program();
  if (!program.empty() && ::unlink(program.c_str()) == 0) {
    ::rmdir(program.parent_path().c_str());
  }
}

void remove_old_versions() {
  remove_old_versions(find_own_program(), "/proc");
}

void remove_old_versions(const Path& program, const Path& proc) {
  const Path own = program.parent_path();
  if (!wire::is_digest(own.filename())) {
    return;
  }
  const std::string architecture = read_architecture(program);
  std::vector<std::pair<std::time_t, Path>> others;
  const Path all = own.parent_path();
  for (const std::string& name : list_names(all)) {
    const Path folder = all / name;
    if (!wire::is_digest(name) || !is_own_folder(folder)) {
      continue;
    }
    remove_interrupted(folder);
    const Path other = folder / program.filename();
    const auto info = look_at(other);
    if (folder != own && info && read_architecture(other) == architecture) {
      others.emplace_back(info->st_mtime, folder);
    }
  }
  std::sort(others.rbegin(), others.rend());
  for (std::size_t index = other_versions; index < others.size(); ++index) {
    const Path& folder = others[index].second;
    if (!is_running(folder / program.filename(), proc)) {
      remove_version(folder);
    }
  }
}

}  // namespace remote::agent
