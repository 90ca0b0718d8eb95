#pragma once

#include <string>
#include <vector>

namespace remote::cli {

// The server that a word names, also as USER@SERVER; "" if none.
std::string server_in(const std::string& word, const std::vector<std::string>& servers);

// Whether a word names a job or a launch by its key: "45", "45-48", "last", or the start of an id.
bool is_job_key(const std::string& word);

// Whether a command line (without "remote") is valid, and names only existing servers, keys of jobs and, if
// it starts one, a program.
bool is_meant(const std::vector<std::string>& line, const std::vector<std::string>& servers);

}  // namespace remote::cli
