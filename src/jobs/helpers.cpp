#include "jobs/helpers.hpp"

#include <algorithm>

#include "servers/action.hpp"
#include "servers/shell_text.hpp"

namespace remote::jobs {
namespace {

// "remote-mpi-rank" is in src/server/lib/mpi_rank.sh.
std::string file_of(const std::string& name) {
  constexpr std::string_view prefix = "remote-";
  std::string file = name.substr(prefix.size()) + ".sh";
  std::ranges::replace(file, '-', '_');
  return file;
}

}  // namespace

std::string helpers_text(const std::string& jobs_folder, const std::vector<std::string>& names) {
  std::vector<std::string> words{jobs_folder};
  for (const std::string& name : names) {
    words.push_back(name);
    words.push_back(file_of(name));
  }
  return servers::shell_text(servers::Script().add("lib/job_programs.sh").call("job_programs", words));
}

std::string job_file_text(const std::string& name, const std::string& text) {
  return servers::shell_text(servers::Script().call("job_file", {name, text}));
}

}  // namespace remote::jobs
