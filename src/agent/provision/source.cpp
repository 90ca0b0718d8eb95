#include "agent/provision/source.hpp"

#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "agent/provision/provision.hpp"
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

// Failures are ignored, because a full disk also makes the project's transfer fail.
wire::RecordSourceReply record_source(const Host& host, const wire::RecordSourceRequest& request) {
  const Path scripts = host.expand(request.scripts);
  const Path file = scripts / source_name;
  wire::RecordSourceReply reply{read_source(scripts)};
  if (!request.source) {
    ::unlink(file.c_str());
  } else if (make_open_folders(scripts)) {
    replace_open_file(file, wire::to_json_text(*request.source) + "\n");
  }
  return reply;
}

}  // namespace remote::agent
