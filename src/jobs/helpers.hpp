#pragma once

#include <string>
#include <vector>

// Programs of ours that a job needs on its server.

namespace remote::jobs {

// sh text to stand behind a job's activation, in the project's folder: it writes these programs into the
// job's folder and puts them on its PATH. `jobs_folder` is the name of the folder of jobs in the project.
// Throws std::logic_error for a name that no program has.
std::string helpers_text(const std::string& jobs_folder, const std::vector<std::string>& names);

// sh text to stand behind that: it writes a file into the job's folder.
std::string job_file_text(const std::string& name, const std::string& text);

}  // namespace remote::jobs
