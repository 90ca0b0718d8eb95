#include "agent/job/job_spec.hpp"

#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {

namespace {

constexpr std::size_t longest_job_spec = std::size_t{128} << 20U;  // JSON is larger than CBOR

}  // namespace

wire::JobSpec make_spec(const wire::JobSpec& common, const wire::OwnSpec& own) {
  wire::JobSpec spec = common;
  spec.variables.insert(spec.variables.end(), own.variables.begin(), own.variables.end());
  if (!own.activate.empty()) {
    spec.activate = own.activate;
    spec.environment.reset();
  }
  if (!own.command.empty()) {
    spec.command = own.command;
  }
  return spec;
}

bool create_spec(const Path& job_folder, const wire::JobSpec& spec) {
  return create_file(job_folder / spec_name, wire::to_json_bytes(spec) + "\n");
}

std::optional<wire::JobSpec> read_spec(const Path& job_folder) {
  return wire::try_read_json<wire::JobSpec>(
      read_job_file(job_folder / spec_name, longest_job_spec).value_or(""));
}

}  // namespace remote::agent
