#include "jobs/places.hpp"

#include <optional>

#include "base/group_by.hpp"

namespace remote::jobs {

std::vector<JobId> JobsAt::ids() const {
  std::vector<JobId> ids;
  for (const Job& job : jobs) {
    ids.push_back(job.id);
  }
  return ids;
}

std::vector<JobsAt> by_place(const std::vector<Job>& jobs) {
  std::vector<JobsAt> places;
  for (const auto& [place, indices] : group_by(
           jobs, [](const Job& job) { return std::optional(std::pair(job.server, job.remote_folder)); })) {
    JobsAt& at = places.emplace_back(JobsAt{place.first, place.second, {}});
    for (const std::size_t i : indices) {
      at.jobs.push_back(jobs[i]);
    }
  }
  return places;
}

}  // namespace remote::jobs
