#include "cli/lifeline_news.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "jobs/ask.hpp"
#include "jobs/refresh.hpp"
#include "servers/fanout.hpp"

namespace remote::cli {

bool warn_of_missing_lifelines(Context& context, const std::vector<jobs::Job>& jobs) {
  std::set<std::pair<JobId, std::string>> told;
  for (const jobs::Job& job : jobs) {
    if (job.state == jobs::State::running && job.launch && job.reason.starts_with(jobs::no_lifeline) &&
        told.emplace(*job.launch, job.server).second) {
      context.terminal.warning(fmt::format("{}: {}", job.server, job.reason));
    }
  }
  if (told.empty()) {
    return false;
  }
  context.terminal.warning(
      "a failed rank therefore ends the ranks on other servers only while this machine follows (--follow). "
      "To mend "
      "it: let the servers reach each other's TCP ports, or give the first "
      "server of the launch the internal_address by which the others reach it, in configs.yaml");
  return true;
}

void warn_when_lifelines_stand(Context& context, jobs::Store& store, const jobs::Lifeline& lifeline,
                               const std::vector<jobs::Job>& ranks) {
  // The first server is the one that the others are to reach.
  const std::vector<std::string> members(lifeline.servers.begin() + 1, lifeline.servers.end());
  const auto outcomes = servers::fan_out(
      members, [](const std::string& name) { return name; },
      [&](const std::string& name, std::size_t) {
        std::vector<jobs::Job> there;
        std::ranges::copy_if(ranks, std::back_inserter(there),
                             [&](const jobs::Job& job) { return job.server == name; });
        return jobs::ask_for_lifeline(context.config(), store, context.connector(), there, context.cancel);
      });
  std::vector<jobs::Job> news;
  for (const auto& outcome : outcomes) {
    if (outcome.ok()) {  // a server that is silent now is job-list's matter: its ranks have started
      news.insert(news.end(), outcome.value->begin(), outcome.value->end());
    }
  }
  warn_of_missing_lifelines(context, news);
}

}  // namespace remote::cli
