#include "jobs/helpers.hpp"

#include <algorithm>

#include "server/scripts.hpp"
#include "servers/action.hpp"

namespace remote::jobs {
namespace {

// "remote-mpi-rank" stands in src/server/mpi_rank.sh.
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
    words.emplace_back(scripts::text(file_of(name)));
  }
  return servers::Script().add("job_programs.sh").call("job_programs", words).text();
}

std::string job_file_text(const std::string& name, const std::string& text) {
  return servers::Script().call("job_file", {name, text}).text();
}

}  // namespace remote::jobs
