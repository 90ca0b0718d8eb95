#pragma once

#include <optional>
#include <string>
#include <vector>

#include "project/core.hpp"
#include "servers/python_env.hpp"
#include "wire/facts.hpp"

namespace remote::project {

// Checks before a start whether servers have everything that `prepare` provides: the project, its Python
// environment, and packages that are installed from local files. Shares its requests with other checks.
class PreparedCheck {
 public:
  // `command`: as run on the servers. `image`: as in LaunchRequest.
  PreparedCheck(const config::Config& config, std::string command, Env env, std::optional<std::string> image);

  // Thread-safe.
  void add_to(wire::FactsRequest& wanted, const config::Server& server) const;
  // Adds the problems of this server. `is_gone`: the result of is_gone_from().
  void judge(const wire::FactsReply& answer, const config::Server& server, bool is_gone,
             std::vector<CheckWarned>& warnings, std::vector<Error>& errors) const;

 private:
  std::string needed_program(const config::Server& server) const;

  const config::Config& config_;
  std::string command_;
  Env env_;
  std::optional<std::string> image_;
  std::optional<servers::PackageSources> packages_;
};

// The files and settings from which packages are installed; nullopt: none, or they cannot be read. `prepare`
// then reports the reason.
std::optional<servers::PackageSources> find_package_sources(const config::Config& config);
// The finding about a server whose packages were installed from other files than these.
Finding old_packages(const std::string& server);
// Why nothing can start on a server.
Error cannot_run(const std::string& reason, const std::string& hint = {});
// Adds a finding about a server. Servers with the same finding share one warning.
void add_warning(std::vector<CheckWarned>& warnings, const std::string& server, const Finding& finding);
// Reports the warnings. If there are errors, reports them and throws Error.
void report_unfit(Core& core, const std::vector<CheckWarned>& warnings, const std::vector<Error>& errors);

}  // namespace remote::project
