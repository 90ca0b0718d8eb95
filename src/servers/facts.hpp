#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/facts.hpp>
#include <remote/top.hpp>

#include "config/config.hpp"
#include "servers/agent.hpp"
#include "servers/leases.hpp"
#include "wire/leases.hpp"

// Facts about a server. launch, check, servers and top get them from its agent.

namespace remote::servers {

struct FactsRequest {
  wire::FactsRequest wanted{};
  std::string files{};  // with `wanted.code`: ProjectState::listed()
  // Also asks for the leases and, with terms, how much of them is available.
  bool leases = false;
  std::optional<wire::LeaseTerms> lease{};
  std::chrono::seconds timeout{60};
  std::chrono::seconds silence{0};
};

struct FactsAnswer : wire::FactsReply {
  wire::LeasesReply leases{};

  // `earlier` is from an earlier reply, to compute the processor usage since then.
  ServerLoad load(const std::optional<wire::Ticks>& earlier) const;
};

// How long `check` waits for a sign of life, so that a hanging login shell or folder does not delay the other
// servers.
std::chrono::seconds check_silence(const config::Config& config);

// Requests everything that `check` needs.
FactsRequest check_request(const config::Config& config, const config::Server& server);
// Requests a server's current load. `project` is its folder, `prologue` the result of prologue().
FactsRequest load_request(std::string_view project, const std::string& prologue = {});

// Asks for the facts, and compares the clocks if `clock` was requested. Throws Error and Interrupted.
FactsAnswer ask_facts(ssh::Connection& connection, const FactsRequest& request, const Cancel& cancel);
// Asks an agent that answers several questions. Does not support leases.
wire::FactsReply ask_facts(Agent& agent, const FactsRequest& request);

// Whether logind kills the user's processes at logout: if KillUserProcesses=yes applies to the user
// (logind.conf(5), pam_systemd(8)). Lingering does not prevent this.
bool logout_ends_jobs(const ServerFacts& facts, const std::string& user);

// How far a server's clock is ahead, if its reply was sent between these times on this machine's clock.
std::chrono::milliseconds clock_difference(ExactInstant server, ExactInstant asked, ExactInstant answered);

// The port to use, from the answer of the launch's first server. If the user's choice is taken, throws Error
// (usage) with the process that uses it, if visible, and a free port.
int choose_port(const FactsAnswer& master, std::optional<int> wanted);

}  // namespace remote::servers
