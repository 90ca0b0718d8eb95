// Runs the harmless fixes for the findings of `remote check`, on all servers in parallel.

#include <algorithm>
#include <chrono>

#include <remote/check.hpp>

#include "base/strings.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "servers/run_command.hpp"

namespace remote::project {
namespace {

void run_fix(Core& core, const config::Server& server, const std::vector<std::string>& fixes) {
  for (const std::string& fix : fixes) {
    const auto connection = core.connector().connect(server, core.cancel());
    ExecResult ended;
    const auto sink = [&](ssh::Stream stream, std::string_view data) {
      if (stream == ssh::Stream::err) {
        append_end(ended.err, data);
      }
    };
    servers::ProcessSpec process;
    process.command = fix;
    ended.status = servers::run_in_foreground(*connection, servers::make_run("~", process), sink,
                                              core.cancel(), std::chrono::seconds(30));
    if (!ended.status.success()) {
      throw Error("cannot repair it by: " + fix, ended.describe(), "try it there by hand");
    }
  }
}

std::vector<Error> mend(Core& core, const CheckReport& report) {
  std::vector<config::Server> servers;
  std::vector<std::vector<std::string>> fixes;
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      if (!finding.fix || finding.fix->where != Fix::Where::server || !finding.fix->harmless) {
        continue;
      }
      const std::string& place = finding.fix->server.empty() ? server.server : finding.fix->server;
      auto known = std::ranges::find(servers, place, &config::Server::name);
      if (known == servers.end()) {
        servers.push_back(core.servers({place}).front());
        fixes.emplace_back();
        known = std::prev(servers.end());
      }
      fixes[static_cast<std::size_t>(known - servers.begin())].push_back(finding.fix->text);
    }
  }
  std::vector<Error> errors;
  for (const auto& outcome :
       servers::fan_out(servers, &config::Server::name, [&](const config::Server&server, std::size_t index) {
         run_fix(core, server, fixes[index]);
         return true;
       })) {
    if (!outcome.ok()) {
      errors.push_back(*outcome.error);
    }
  }
  return errors;
}

}  // namespace

}  // namespace remote::project

namespace remote {

std::vector<Error> Project::mend(const CheckReport& report, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::mend(core, report); });
}

}  // namespace remote
