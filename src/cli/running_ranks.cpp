#include "cli/running_ranks.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace remote::cli {

ChosenRanks choose_ranks(Project& project, const std::string& command, const JobOptions& options) {
  // Includes named jobs that have ended, to report that they are not running.
  std::vector<Job> chosen =
      project.jobs({.selection = options.selection(), .unfinished_only = !options.by_name()});
  std::vector<Job> absent;
  std::ranges::copy_if(chosen, std::back_inserter(absent),
                       [](const Job& job) { return is_final(job.state); });
  std::erase_if(chosen, [](const Job& job) { return is_final(job.state); });
  if (chosen.empty()) {
    throw Error::usage(command, options.named() ? "none of these jobs is running" : "no job runs",
                       "see: remote job-list --stopped");
  }
  std::erase_if(chosen, is_idle);
  if (std::ranges::all_of(chosen, [](const Job& job) { return job.state == JobState::queued; })) {
    throw Error::usage(command, "these jobs are queued: they have no ranks yet", "see: remote job-list");
  }
  const auto order = [](const Job& job) {
    return std::tuple(job.state == JobState::running, job.launch.has_value(), job.created_at, job.key);
  };
  const Job newest = *std::ranges::max_element(chosen, {}, order);
  if (!options.named() && newest.state == JobState::running) {
    std::erase_if(chosen, [&](const Job& job) {
      return newest.launch ? job.launch != newest.launch : job.id != newest.id;
    });
  }
  if (!options.by_name()) {  // a rank that has ended is often the reason why the others wait
    absent = project.with_launch(chosen);
    std::erase_if(absent, [](const Job& job) { return !job.launch || !is_final(job.state); });
  }
  // A server that has just not answered is not asked again.
  std::ranges::copy_if(chosen, std::back_inserter(absent),
                       [](const Job& job) { return job.state == JobState::unknown; });
  std::erase_if(chosen, [](const Job& job) { return job.state == JobState::unknown; });
  return {std::move(chosen), std::move(absent)};
}

}  // namespace remote::cli
