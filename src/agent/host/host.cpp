#include "agent/host/host.hpp"

#include <algorithm>
#include <array>

#include <pwd.h>
#include <unistd.h>

#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::array hidden_variables{"TMOUT",
                                      "CDPATH",
                                      "BASH_ENV",
                                      "ENV",
                                      "GLOBIGNORE",
                                      "EXECIGNORE",
                                      "FUNCNEST",
                                      "TIME_STYLE",
                                      "QUOTING_STYLE",
                                      "BLOCK_SIZE",
                                      "BLOCKSIZE",
                                      "LS_BLOCK_SIZE",
                                      "DF_BLOCK_SIZE",
                                      "DU_BLOCK_SIZE",
                                      "GREP_OPTIONS",
                                      "GREP_COLOR",
                                      "GREP_COLORS",
                                      "TAR_OPTIONS",
                                      "GZIP",
                                      "PYTHONINSPECT",
                                      "PYTHONVERBOSE",
                                      "PYTHONWARNINGS",
                                      "PYTHONDEBUG",
                                      "PYTHONIOENCODING",
                                      "PYTHONPROFILEIMPORTTIME",
                                      "SHELLOPTS",
                                      "BASHOPTS",
                                      "REMOTE_JOB_ID"};

// These are hidden under their own names, because a shell evaluates them before it runs a script.
constexpr std::array<std::string_view, 4> shell_variables{"PATH", "ENV", "SHELLOPTS", "BASHOPTS"};

std::vector<std::string> join_variables(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) {
    lines.push_back(name + "=" + value);
  }
  return lines;
}

// Converts an exported bash function to shell text, which lib/prologue.sh evaluates in bash for the user's
// own text. `name` ends with "%%".
std::string define_function(std::string_view name, std::string_view value) {
  name = name.substr(0, name.find('%'));
  return text::format("{} {}\ndeclare -fx {}\n", name, value, name);
}

}  // namespace

Host Host::of_this_process() {
  Host host;
  std::string functions;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    if (end == std::string_view::npos) {
      continue;
    }
    const std::string_view name = text.substr(0, end);
    if (name.starts_with("BASH_FUNC_")) {
      functions += define_function(name.substr(10), text.substr(end + 1));
    } else {
      host.environment.try_emplace(std::string(name), text.substr(end + 1));
    }
  }
  if (!functions.empty()) {
    host.environment["REMOTE_HID_FUNCTIONS"] = functions;
  }
  for (const char* name : hidden_variables) {
    if (auto hidden = host.environment.extract(name)) {
      host.set_aside.insert(std::move(hidden));
    }
  }
  host.set_aside.erase("REMOTE_JOB_ID");
  if (auto locale = host.environment.extract("LC_ALL")) {
    host.set_aside.insert(std::move(locale));
  }
  host.environment["LC_ALL"] = "C";
  std::string& path = host.environment["PATH"];
  if (!path.empty()) {
    host.set_aside["PATH"] = path;
  }
  path = (path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path) + ":/usr/sbin:/sbin";
  host.home = host.variable("HOME");
  host.cancelled = std::make_shared<std::atomic<bool>>(false);
  return host;
}

Host Host::without_cancel() const {
  Host host = *this;
  host.cancelled = nullptr;
  return host;
}

Path Host::expand(std::string_view path) const {
  if (path.starts_with('/')) {
    return path;
  }
  if (path == "~" || path.empty()) {
    return home;
  }
  return home / (path.starts_with("~/") ? path.substr(2) : path);
}

std::string Host::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::vector<std::string> Host::list_variables() const {
  return join_variables(environment);
}

std::vector<std::string> Host::list_job_variables() const {
  std::map<std::string, std::string> all = environment;
  for (const auto& [name, value] : set_aside) {
    const bool is_for_shells = std::ranges::find(shell_variables, name) != shell_variables.end();
    if (name != "LC_ALL") {
      all[is_for_shells ? name : "REMOTE_HID_" + name] = value;
    }
  }
  return join_variables(all);
}

std::vector<std::string> Host::list_account_variables() const {
  std::map<std::string, std::string> all = environment;
  all.erase("LC_ALL");
  for (const auto& [name, value] : set_aside) {
    all[name == "PATH" || name == "LC_ALL" ? name : "REMOTE_HID_" + name] = value;
  }
  const std::vector<std::string> folders = split(all["PATH"], ':');
  if (std::ranges::none_of(folders,
                           [](const std::string& folder) { return is_program(Path(folder) / "mkdir"); })) {
    all["PATH"] += ":/usr/bin:/bin";
  }
  return join_variables(all);
}

Path Host::find_program(std::string_view name) const {
  for (const std::string& folder : split(variable("PATH"), ':')) {
    Path path = Path(folder.empty() ? "." : folder) / name;
    if (is_program(path)) {
      return path;
    }
  }
  return {};
}

}  // namespace remote::agent
