#pragma once

#include <remote/cancel.hpp>

#include "servers/agent.hpp"

namespace remote::jobs {

// A running agent, or a connection that starts one for each question. The referenced objects must outlive
// this.
struct AnyAgent {
  // NOLINTNEXTLINE(google-explicit-constructor): functions accept a running agent directly
  AnyAgent(servers::Agent& running) : agent(&running) {}
  AnyAgent(ssh::Connection& to_server, const Cancel& until) : connection(&to_server), cancel(&until) {}

  // Calls ask() of the running agent, or servers::ask_agent().
  void ask(const servers::AgentQuestion& question, const servers::Agent::TakeReply& take) const;
  wire::Reply ask(const servers::AgentQuestion& question) const;

  servers::Agent* agent = nullptr;  // if nullptr, the others are set
  ssh::Connection* connection = nullptr;
  const Cancel* cancel = nullptr;
};

}  // namespace remote::jobs
