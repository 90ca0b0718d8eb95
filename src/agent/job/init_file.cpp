#include "agent/job/init_file.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/folder_entries.hpp"
#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

// The shared folder contains `store`, which torch creates (`store.N` after N restarts), `launch` with the
// launch's id, and `ended.ID` for each job that has ended. Another user could replace the folder with one
// that contains links, so it is opened only once, and links are not followed.

namespace remote::agent {
namespace {

constexpr std::string_view folder_mark = "/.remote-init-";

struct SharedFolder {
  int jobs = 0;  // number of jobs in the launch
  std::string path{};
};

std::optional<SharedFolder> read_shared_folder(const Path& job_folder) {
  const std::vector<std::string> lines =
      split(read_job_file(job_folder / "init_file", std::size_t{8} << 10U).value_or(""), '\n');
  if (lines.size() < 3) {  // the last one is empty or incomplete
    return std::nullopt;
  }
  const auto jobs = parse_number<int>(trim(lines[0]));
  if (!jobs || !lines[1].starts_with('/')) {
    return std::nullopt;
  }
  return SharedFolder{*jobs, lines[1]};
}

// Returns whether the folder belongs to this user and this launch.
bool is_of_launch(int folder, const std::string& path) {
  struct stat info {};
  // On NFS, root's files can belong to another user.
  if (::fstat(folder, &info) != 0 || (info.st_uid != ::geteuid() && ::geteuid() != 0)) {
    return false;
  }
  const std::string id = read_launch_id(folder);
  const std::size_t mark = path.rfind(folder_mark);
  return wire::is_id(id) && mark != std::string::npos && path.substr(mark + folder_mark.size()) == id;
}

std::vector<std::string> list_open_folder(int folder) {
  std::vector<std::string> names;
  const FolderEntries entries = open_entries(folder);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    names.emplace_back(static_cast<const char*>(entry->d_name));
  }
  return names;
}

// Opens the shared folder of a launch. Returns -1 if there is none.
int open_shared_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (folder >= 0 && !is_of_launch(folder, path)) {
    ::close(folder);
    return -1;
  }
  return folder;
}

void remove_open_folder(int folder, const std::string& path) {
  for (const std::string& name : list_open_folder(folder)) {
    if (name == "store" || name == "launch" || name.starts_with("store.") || name.starts_with("ended.")) {
      ::unlinkat(folder, name.c_str(), 0);
    }
  }
  ::rmdir(path.c_str());
}

}  // namespace

std::string read_launch_id(int folder) {
  struct stat info {};
  const int fd = ::openat(folder, "launch", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  std::array<char, 64> buffer{};
  ssize_t count = -1;
  if (fd >= 0) {
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
      count = ::read(fd, buffer.data(), buffer.size());
    }
    ::close(fd);
  }
  const std::string_view id(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return std::string(id.substr(0, id.find('\n')));
}

void leave_init_file(const Path& job_folder, const std::string& id) {
  const std::optional<SharedFolder> shared = read_shared_folder(job_folder);
  const int folder = shared ? open_shared_folder(shared->path) : -1;
  if (folder < 0) {
    return;
  }
  const int mark =
      ::openat(folder, ("ended." + id).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (mark >= 0) {
    ::close(mark);
  }
  const std::vector<std::string> names = list_open_folder(folder);
  const auto ended =
      std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("ended."); });
  if (ended >= shared->jobs) {
    remove_open_folder(folder, shared->path);
  }
  ::close(folder);
}

void remove_shared_folder(const std::string& path) {
  const int folder = open_shared_folder(path);
  if (folder >= 0) {
    remove_open_folder(folder, path);
    ::close(folder);
  }
}

void remove_init_file(const Path& job_folder) {
  if (const auto shared = read_shared_folder(job_folder)) {
    remove_shared_folder(shared->path);
  }
}

}  // namespace remote::agent
