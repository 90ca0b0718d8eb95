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

// What a server is and has: launch, check, servers and top ask its agent.

namespace remote::servers {

struct FactsRequest {
  wire::FactsRequest wanted{};
  std::string files{};  // with `wanted.code`: ProjectState::listed()
  // The leases too; with terms also how much of them is free.
  bool leases = false;
  std::optional<wire::LeaseTerms> lease{};
  std::chrono::seconds timeout{60};
  std::chrono::seconds silence{0};
};

struct FactsAnswer : wire::FactsReply {
  wire::LeasesReply leases{};

  // `earlier`: of an earlier reply, to compute the use of the processors since then.
  ServerLoad load(const std::optional<wire::Ticks>& earlier) const;
};

// How long `check` waits for the next sign of life: a login shell or a folder that hangs must not hold up the
// other servers.
std::chrono::seconds check_silence(const config::Config& config);

// All that `check` asks.
FactsRequest check_request(const config::Config& config, const config::Server& server);
// How a server is at a moment. `project`: its folder. `prologue`: as prologue() returns it.
FactsRequest load_request(std::string_view project, const std::string& prologue = {});

// Asks, and compares the clocks if `clock` was asked for. Throws Error and Interrupted.
FactsAnswer ask_facts(ssh::Connection& connection, const FactsRequest& request, const Cancel& cancel);
// Asks an agent that answers several questions; without leases.
wire::FactsReply ask_facts(Agent& agent, const FactsRequest& request);

// Whether logind ends the processes of a user when the login ends: if KillUserProcesses=yes
// applies to the user (logind.conf(5), pam_systemd(8)). Lingering does not help against it.
bool logout_ends_jobs(const ServerFacts& facts, const std::string& user);

// How far a server's clock is ahead, if its reply was sent between these moments of this machine's clock.
std::chrono::milliseconds clock_difference(ExactInstant server, ExactInstant asked, ExactInstant answered);

// The port to use, from the answer of the launch's first server. Throws Error (usage) if the user's choice
// is taken, with the process that has it, if visible, and a free port.
int choose_port(const FactsAnswer& master, std::optional<int> wanted);

}  // namespace remote::servers
