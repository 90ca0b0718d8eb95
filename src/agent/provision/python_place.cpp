#include "agent/provision/python_place.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/find_python.hpp"
#include "agent/provision/server_places.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr mode_t open_folder = 0755;
constexpr mode_t open_file = 0644;

bool is_writable(const Path& path) {
  return ::access(path.c_str(), W_OK) == 0;
}

// Follows conda, which creates environments elsewhere if it cannot write to its own folder.
bool is_taken_by_others(const Path& environment, const Path& conda) {
  const Path all = conda / "envs";
  return !is_program(environment / "bin/python") && !is_writable(all) &&
         (is_folder(all) || !is_writable(conda));
}

}  // namespace

PythonPlace::PythonPlace(const Host& host, const wire::ManagedPython& python)
    : python_(python),
      home_(host.home),
      project_(host.expand(python.project)),
      scripts_(host.expand(python.scripts)),
      conda_(host.expand(python.conda)),
      folder_(host.expand(python.folder)) {
  if (!python.other_folder.empty() && is_taken_by_others(folder_, conda_)) {
    folder_ = host.expand(python.other_folder);
  }
  stamps_ = is_folder(folder_) && !is_writable(folder_) ? scripts_ : folder_;
}

std::string PythonPlace::packages_digest(const Host& host) const {
  return digest_with_places(host, python_.packages_digest, python_.packages_places);
}

Path PythonPlace::find_interpreter(const Host& host) const {
  if (python_.manager != wire::PythonManager::system) {
    const Path own = folder_ / "bin/python";
    return is_program(own) ? own : Path();
  }
  Path found = host.find_program("python");
  if (python_.has_prologue && !found.empty()) {
    return found;
  }
  if (Path own = scripts_ / "bin/python"; is_program(own)) {
    return own;
  }
  return !found.empty() && is_python(host, found, python_.version) ? found : Path();
}

bool PythonPlace::is_set_up(const Host& host) const {
  return has_stamp(setup_stamp(), python_.setup_digest) && !find_interpreter(host).empty();
}

void PythonPlace::refresh() const {
  for (const Path& folder :
       {home_, project_, scripts_, conda_, conda_ / "envs", folder_.parent_path(), folder_}) {
    const Path file = folder / (".remote-look." + make_random_name());
    const Descriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (made) {
      ::unlink(file.c_str());
    }
  }
}

std::string name_packages_stamp(const std::string& project_key) {
  return ".remote-packages." + project_key;
}

bool has_stamp(const Path& path, std::string_view digest) {
  const std::string text = read_job_file(path).value_or("");
  return !text.empty() && std::string_view(text).substr(0, text.find('\n')) == digest;
}

bool replace_open_file(const Path& path, std::string_view text) {
  const Path unfinished = path.string() + ".new";
  return put_open_file(unfinished, text) && ::rename(unfinished.c_str(), path.c_str()) == 0;
}

void write_stamp(const Path& path, const std::vector<std::string>& lines) {
  if (!make_open_folders(path.parent_path()) || !replace_open_file(path, join(lines, "\n") + "\n")) {
    throw ProvisionError("cannot write " + path.string());
  }
}

bool put_open_file(const Path& path, std::string_view text) {
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, open_file);
  if (fd < 0) {
    return false;
  }
  ::fchmod(fd, open_file);  // regardless of the umask
  const bool is_written = write_whole(fd, text);
  return ::close(fd) == 0 && is_written;
}

bool make_open_folders(const Path& path) {
  if (is_folder(path)) {
    return true;
  }
  if (path.string().size() > 1 && !path.parent_path().empty() && !make_open_folders(path.parent_path())) {
    return false;
  }
  if (::mkdir(path.c_str(), open_folder) != 0) {
    return errno == EEXIST && is_folder(path);
  }
  const auto info = look_at_entry(path);
  return info && ::chmod(path.c_str(), info->st_mode | open_folder) == 0;
}

Path choose_program(std::initializer_list<Path> paths) {
  for (const Path& path : paths) {
    if (!path.empty() && is_program(path)) {
      return path;
    }
  }
  return {};
}

Path find_uv(const Host& host) {
  return choose_program({host.find_program("uv"), host.home / ".local/bin/uv", host.home / ".cargo/bin/uv"});
}

std::vector<std::string> find_missing_packages(const Host& host, const std::vector<std::string>& packages) {
  std::vector<std::string> missing;
  for (const std::string& package : packages) {
    const std::size_t equals = package.find('=');
    const bool has_version = equals != std::string::npos;
    const std::string format = has_version ? "-f=${Status}=${Version}\\n" : "-f=${Status}\\n";
    const std::string wanted =
        "install ok installed" + (has_version ? package.substr(equals) : std::string());
    const RunResult found =
        run(host, {.argv = {"dpkg-query", "-W", format, "--", package.substr(0, equals)}});
    // There is one line per architecture.
    const std::vector<std::string> lines = split(found.out, '\n');
    if (std::ranges::find(lines, wanted) == lines.end()) {
      missing.push_back(package);
    }
  }
  return missing;
}

}  // namespace remote::agent
