#pragma once

#include <remote/job.hpp>

// The names of include/remote/job.hpp, for those who say jobs::Job.

namespace remote::jobs {

using remote::is_final;
using remote::Job;
using remote::to_string;
using State = JobState;

}  // namespace remote::jobs
