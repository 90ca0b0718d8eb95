// Whether the servers are fit for a run: asks all of them side by side, and judges what they answer.

#include "project/check/check.hpp"

#include <algorithm>

#include "project/check/network.hpp"
#include "servers/fanout.hpp"

namespace remote {

bool ServerCheck::ok() const {
  return std::ranges::find(findings, CheckStatus::fail, &Finding::status) == findings.end();
}

bool CheckReport::ok() const {
  return std::ranges::all_of(servers, &ServerCheck::ok);
}

}  // namespace remote

namespace remote::project {
namespace {

Finding unreachable(const Error& error) {
  Finding finding{"connect", CheckStatus::fail, error.what_failed() + ": " + error.reason(), std::nullopt};
  if (!error.hint().empty()) {
    finding.fix = Fix{Fix::Where::advice, error.hint()};
  }
  return finding;
}

void add_network(Core& core, const std::vector<config::Server>& servers, CheckReport& report) {
  report.network = look_at_network(core, servers);
  if (!report.network) {
    return;
  }
  const std::vector<std::vector<Finding>> all = network_findings(*report.network);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Finding>& findings = report.servers[i].findings;
    findings.insert(findings.end(), all[i].begin(), all[i].end());
  }
}

}  // namespace

CheckReport check(Core& core, const CheckRequest& request) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t) {
        return core.connector().connect(server, core.cancel())->peer_address();
      });
  CheckReport report;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ServerCheck found{servers[i].name};
    found.error = outcomes[i].error;
    found.findings.push_back(
        outcomes[i].ok() ? Finding{"connect", CheckStatus::ok, "connected to " + *outcomes[i].value, {}}
                         : unreachable(*outcomes[i].error));
    report.servers.push_back(std::move(found));
  }
  add_network(core, servers, report);
  return report;
}

}  // namespace remote::project
