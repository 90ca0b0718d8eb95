#include "servers/pip_hints.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <fmt/format.h>

#include "base/has_any.hpp"
#include "base/strings.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_decisive = 200;

// Removes the frames that pip and uv draw around the output of another program.
std::string_view unframed(std::string_view line) {
  for (bool cut = true; cut;) {
    cut = false;
    line = trim(line);
    for (const std::string_view mark : {"│", "├", "╰", "─", "▶", "|", ">"}) {
      if (line.starts_with(mark)) {
        line.remove_prefix(mark.size());
        cut = true;
      }
    }
  }
  return line;
}

// Whether the line only says that another line has the cause.
bool is_pointer(std::string_view line) {
  return has_any(line,
                 {"subprocess-exited-with-error", "metadata-generation-failed", "legacy-install-failure",
                  "See above for", "did not run successfully", "Encountered error while"});
}

// Whether the line has the form "OSError: …" or "conda.exceptions.PackagesNotFoundError: …".
bool is_exception(std::string_view line) {
  const std::size_t colon = line.find(": ");
  const std::string_view name = line.substr(0, colon == line.npos ? line.size() : colon);
  return colon != line.npos && name.find(' ') == name.npos &&
         (name.ends_with("Error") || name.ends_with("Exception"));
}

bool is_decisive(std::string_view raw) {
  const std::string_view line = unframed(raw);
  if (line.empty() || is_pointer(line)) {
    return false;
  }
  return line.starts_with("ERROR") || line.starts_with("error:") || line.starts_with("fatal:") ||
         line.starts_with("E: ") || line.starts_with("× ") || line.starts_with("ssh: ") ||
         has_any(line, {": error: ", "fatal error: ", "Permission denied (", "Host key verification failed",
                        "Could not read from remote repository"}) ||
         is_exception(line);
}

// The decisive lines. If one ends with a colon, the list that follows is included.
std::vector<std::string_view> find_decisive(std::string_view err) {
  constexpr int longest_list = 5;
  std::vector<std::string_view> found;
  int announced = 0;
  while (!err.empty()) {
    const std::size_t end = err.find('\n');
    const std::string_view line = err.substr(0, end);
    err.remove_prefix(end == err.npos ? err.size() : end + 1);
    const std::string_view text = trim(line);
    if (is_decisive(line)) {
      found.push_back(unframed(line));
      announced = text.ends_with(':') ? longest_list : 0;
    } else if (announced > 0 && !text.empty()) {
      const bool listed = text.starts_with("- ") || line.starts_with(' ');
      announced = listed ? announced - 1 : 0;
      if (listed) {
        found.push_back(line);
      }
    }
  }
  return found;
}

// The text between these two texts; "" if they are missing.
std::string between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t at = line.find(before);
  if (at == line.npos) {
    return {};
  }
  const std::string_view rest = line.substr(at + before.size());
  return visible_line(trim(rest.substr(0, rest.find_first_of(after))), 80);
}

// The requirement that conda writes and pip rejects: "python=3.10"; "" if none.
std::string conda_requirement(std::string_view err) {
  const std::string requirement = between(err, "Invalid requirement: '", "'\r\n");
  const std::size_t equals = requirement.find('=');
  const bool is_single = equals != std::string::npos && equals > 0 && equals + 1 < requirement.size() &&
                         requirement[equals + 1] != '=' &&
                         std::string_view("=<>!~ ").find(requirement[equals - 1]) == std::string_view::npos;
  return is_single ? requirement : "";
}

// `printed` is the file that could not be written; "" if the program did not print it. The program has
// removed its temporary files, so the full disk is probably the one with the least free space.
std::string full_disk_hint(const std::string& printed, const std::vector<DiskFacts>& disks) {
  const auto has_file = [&](const DiskFacts& disk) { return printed.starts_with(disk.path + "/"); };
  auto full = std::ranges::find_if(disks, has_file);
  if (full == disks.end() && printed.empty()) {
    full = std::ranges::min_element(disks, {}, &DiskFacts::free_bytes);
  }
  if (full == disks.end()) {
    return printed.empty() ? "free some space on the server's disk, then run the command again"
                           : fmt::format("free some space on the server's disk with {}", printed);
  }
  const std::string place =
      fmt::format("{} ({} MB left)", visible_line(full->path, 200), full->free_bytes >> 20U);
  return full->what == "tmp"
             ? fmt::format(
                   "free some space in {} on the server, or set TMPDIR in `env` of the server to a folder "
                   "with more space",
                   place)
             : fmt::format("free some space in {} on the server, then run the command again", place);
}

}  // namespace

std::string decisive_lines(std::string_view err, std::size_t most) {
  std::vector<std::string_view> found = find_decisive(err);
  found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(std::min(found.size(), most)));
  std::string text;
  for (const std::string_view line : found) {
    text += (text.empty() ? "" : "\n") + std::string(line);
  }
  return text;
}

bool says_disk_full(std::string_view err) {
  return has_any(err, {"No space left on device"});
}

std::string pip_hint(std::string_view err, bool own_environment, const std::vector<DiskFacts>& disks) {
  const std::string decisive = decisive_lines(err, most_decisive);
  const auto says = [&](std::initializer_list<std::string_view> texts) { return has_any(decisive, texts); };
  if (says({"Permission denied (publickey", "Host key verification failed"})) {
    return "the server itself has no access to that repository: use an https URL for it, give the account "
           "there a key for it, or send the package as a wheel (python.find_links)";
  }
  for (const char* before : {"Could not resolve host: ", "Could not resolve hostname "}) {
    if (const std::string host = between(err, before, "\r\n'\":"); !host.empty()) {
      return fmt::format("the server cannot resolve '{}'", host);
    }
  }
  const bool no_apt_package = says({"Unable to locate package", "has no installation candidate"});
  // The message of apt-get; uv prints "Failed to fetch: `http…". apt-get update only warns about it.
  if (says({"Temporary failure resolving", "Failed to fetch http"}) ||
      (no_apt_package && has_any(err, {"Temporary failure resolving", "Network is unreachable"}))) {
    return "the server cannot reach the package mirrors of its distribution";
  }
  const bool no_package = says({"No matching distribution found", "Could not find a version", "Max retries",
                                "Failed to fetch", "CondaHTTPError", "Could not fetch"});
  // If the network is down, the error also ends with "no matching distribution".
  if (no_package && has_any(err, {"Temporary failure in name resolution", "Name or service not known",
                                  "NewConnectionError", "ConnectTimeoutError", "Network is unreachable",
                                  "ProxyError", "dns error", "CondaHTTPError"})) {
    return "the server cannot reach the package index: python.index_url in configs.yaml sets another one, "
           "python.find_links a folder with wheels";
  }
  if (says({"dpkg was interrupted"})) {
    return "an earlier installation was interrupted: run `dpkg --configure -a` on the server as root";
  }
  if (says({"Could not get lock"})) {
    return "another process is installing packages there, and the line names it: run the command again when "
           "it has ended";
  }
  if (no_apt_package) {
    if (has_any(err, {"Failed to fetch", "have a Release file", "has a Release file"})) {
      return "the server cannot read one of its package sources, which the output names: correct it in "
             "/etc/apt/sources.list or /etc/apt/sources.list.d";
    }
    return "is that the package's name in this distribution? (system_packages in configs.yaml)";
  }
  if (says_disk_full(decisive)) {
    return full_disk_hint(between(decisive, "No space left on device: '", "'"), disks);
  }
  if (has_any(err, {"setuptools-scm was unable to detect version",
                    "setuptools_scm was unable to detect version", "unable to detect version for",
                    "Cannot find the version from SCM", "does not appear to be a Git project",
                    "Versioning for this project requires either an sdist"})) {
    return "the package takes its version from git, and the copy of the project there has no .git: remove "
           ".git from "
           ".remote/exclude.txt, or give the version: `prologue: export SETUPTOOLS_SCM_PRETEND_VERSION=0.1` "
           "(of pbr "
           "PBR_VERSION, of pdm PDM_BUILD_SCM_VERSION)";
  }
  if (const std::string one = conda_requirement(decisive); !one.empty()) {
    const std::string name = one.substr(0, one.find('='));
    const std::string version = one.substr(one.find('=') + 1);
    return name == "python" ? fmt::format(
                                  "'{}' is a line for conda: remove it from requirements.txt, and set "
                                  "`python: {{version: '{}'}}` in configs.yaml",
                                  one, version.substr(0, version.find('=')))
                            : fmt::format("'{}' is a line for conda: pip takes {}=={} in requirements.txt",
                                          one, name, version.substr(0, version.find('=')));
  }
  if (says({"ResolutionImpossible", "conflicting dependencies"})) {
    return "the requirements contradict each other: loosen one of the named versions";
  }
  if (const std::string name = between(decisive, "No matching distribution found for ", "\r\n");
      !name.empty()) {
    return fmt::format(
        "is '{}' the right name, and does that version exist for the Python there (python.version)? If it is "
        "in another index, name that: python.index_url, extra_index_urls or find_links; pip says the "
        "same "
        "if an index refuses the password",
        name);
  }
  if (says({"gcc' failed", "g++' failed", "Python.h: No such file", "Unable to find a compiler"})) {
    return "a package has to be compiled: system_packages: [build-essential, python3-dev] in configs.yaml "
           "installs the tools for that";
  }
  if (const std::string path = between(decisive, "[Errno 13] Permission denied: '", "'"); !path.empty()) {
    return own_environment ? fmt::format("the login may not write to {} on the server", path)
                           : "the login may not write to the environment: let remote make one (python: "
                             "{manager: venv})";
  }
  return {};
}

}  // namespace remote::servers
