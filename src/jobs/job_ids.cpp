#include "jobs/job_ids.hpp"

#include <algorithm>
#include <iterator>

namespace remote::jobs {

std::vector<std::string> to_texts(const std::vector<JobId>& ids) {
  std::vector<std::string> texts;
  std::ranges::transform(ids, std::back_inserter(texts), &JobId::text);
  return texts;
}

}  // namespace remote::jobs
