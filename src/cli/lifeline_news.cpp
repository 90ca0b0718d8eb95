#include "cli/lifeline_news.hpp"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "jobs/refresh.hpp"

namespace remote::cli {

bool warn_of_missing_lifelines(Context& context, const std::vector<jobs::Job>& jobs) {
  std::set<std::pair<std::string, std::string>> told;
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

}  // namespace remote::cli
