#pragma once

#include <optional>

#include "agent/host/path.hpp"
#include "wire/start.hpp"

namespace remote::agent {

// The file in a job's folder that describes the job. If a folder lacks it, no start request created the
// folder.
constexpr const char* spec_name = "spec.json";

wire::JobSpec make_spec(const wire::JobSpec& common, const wire::OwnSpec& own);

// Returns false if the file exists or cannot be written.
bool create_spec(const Path& job_folder, const wire::JobSpec& spec);
std::optional<wire::JobSpec> read_spec(const Path& job_folder);

}  // namespace remote::agent
