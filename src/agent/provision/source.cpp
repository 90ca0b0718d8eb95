#include "agent/provision/source.hpp"

#include "agent/job/job_files.hpp"
#include "agent/provision/python_place.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

constexpr const char* source_name = "source.json";
constexpr std::size_t longest = 32768;

}  // namespace

std::optional<wire::ProjectSource> read_source(const Path& scripts) {
  return wire::try_read_json<wire::ProjectSource>(read_job_file(scripts / source_name, longest).value_or(""));
}

void write_source(const Path& scripts, const wire::ProjectSource& source) {
  replace_open_file(scripts / source_name, wire::to_json_text(source) + "\n");
}

}  // namespace remote::agent
