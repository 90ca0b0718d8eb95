#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>

namespace remote::jobs {

std::vector<std::string> to_texts(const std::vector<JobId>& ids);

}  // namespace remote::jobs
