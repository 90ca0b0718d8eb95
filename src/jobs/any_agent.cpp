#include "jobs/any_agent.hpp"

namespace remote::jobs {

void AnyAgent::ask(const servers::AgentQuestion& question, const servers::Agent::TakeReply& take) const {
  if (agent != nullptr) {
    agent->ask(question, take);
    return;
  }
  servers::ask_agent(*connection, question, take, *cancel);
}

wire::Reply AnyAgent::ask(const servers::AgentQuestion& question) const {
  return agent != nullptr ? agent->ask(question) : servers::ask_agent(*connection, question, *cancel);
}

}  // namespace remote::jobs
