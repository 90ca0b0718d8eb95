#include "agent/host/login_path.hpp"

#include <map>
#include <mutex>
#include <tuple>

#include "agent/host/run.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

std::string ask_shell(const Host& host, const char* option) {
  constexpr std::string_view mark = "@path ";
  std::string shell = host.variable("SHELL");
  if (shell.empty()) {
    shell = "/bin/sh";
  }
  const RunResult result = run(host, {.argv = {shell, option, "-c", R"(printf "\n@path %s\n" "$PATH")"},
                                      .limit = std::chrono::seconds(5),
                                      .ends_group = true});
  // Startup files may print anything.
  for (const std::string& line : split(result.out, '\n')) {
    if (line.starts_with(mark)) {
      return line.substr(mark.size());
    }
  }
  return "";
}

std::string read_path(const Host& host, const char* option) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, std::string, std::string>, std::string> known;
  const std::scoped_lock lock(mutex);
  const auto key =
      std::tuple(std::string(option), host.variable("SHELL"), host.variable("HOME"), host.variable("PATH"));
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, ask_shell(host, option)).first->second;
}

}  // namespace

std::string read_login_path(const Host& host) {
  return read_path(host, "-l");
}

std::string read_interactive_path(const Host& host) {
  return read_path(host, "-i");
}

Host add_login_path(const Host& host) {
  Host extended = host;
  const std::string more = read_login_path(host);
  std::string& path = extended.environment["PATH"];
  if (more.starts_with('/') && !path.ends_with(":" + more)) {
    path += path.empty() ? more : ":" + more;
  }
  return extended;
}

}  // namespace remote::agent
