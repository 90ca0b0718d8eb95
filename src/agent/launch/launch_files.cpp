#include "agent/launch/launch_files.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <unistd.h>

#include "agent/job/json_lines.hpp"
#include "agent/job/record.hpp"
#include "wire/parse_json.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t largest_spec = std::size_t{16} << 20U;
constexpr std::string_view spec_name = "lifeline.json";
constexpr std::string_view launch_journal_name = "lifeline.journal";

}  // namespace

std::optional<wire::LaunchSpec> read_launch_spec(const Path& job_folder) {
  auto spec =
      wire::try_read_json<wire::LaunchSpec>(read_job_file(job_folder / spec_name, largest_spec).value_or(""));
  const bool is_valid =
      spec && !spec->jobs.empty() &&
      std::ranges::find(spec->servers, spec->server, &wire::LaunchServer::name) != spec->servers.end();
  return is_valid ? std::move(spec) : std::nullopt;
}

std::optional<std::string> read_launch_program(const Path& job_folder) {
  const std::string text = read_job_file(job_folder / spec_name, largest_spec).value_or("");
  const auto document = wire::JsonDocument::parse(text);
  const wire::Value* program = document ? document->value().find("program") : nullptr;
  if (program == nullptr || !program->is(wire::Value::Kind::string) || !wire::is_word(program->string, "")) {
    return std::nullopt;
  }
  return std::string(program->string);
}

bool write_launch_spec(const Path& job_folder, const wire::LaunchSpec& spec) {
  return put_file(job_folder / spec_name, wire::to_json_text(spec) + "\n");
}

std::vector<wire::LaunchEntry> read_launch_journal(const Path& job_folder) {
  return read_json_lines<wire::LaunchEntry>(job_folder / launch_journal_name);
}

bool append_to_launch_journal(const Path& job_folder, const wire::LaunchEntry& entry) {
  return append_json_line(job_folder / launch_journal_name, entry);
}

void remove_launch_files(const Path& job_folder) {
  for (const std::string_view name : {std::string_view("lifeline.pid"), spec_name, launch_journal_name}) {
    ::unlink((job_folder / name).c_str());
  }
}

}  // namespace remote::agent
