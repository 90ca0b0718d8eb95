#include "servers/results.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "servers/action.hpp"
#include "servers/match.hpp"
#include "servers/sync.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_files = 100000;

// A server that is not to be trusted may name anything.
bool is_within(const std::vector<std::string>& outputs, const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && !name.ends_with('/') && path.is_relative() &&
         path.lexically_normal().string() == name && *path.begin() != ".." &&
         std::ranges::none_of(path, decides_what_runs) &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }) &&
         std::ranges::any_of(outputs, [&](const std::string& output) { return fits_within(output, name); });
}

}  // namespace

void WrittenAnswer::take(AnswerLine& line) {
  if (line.kind() != "results") {
    line.refuse_kind();
  }
  if (line.choice<bool>(line.word(), {{"file", false}, {"gone", true}}, "an unknown word")) {
    gone = true;
    return;
  }
  WrittenFile file;
  file.mtime = line.number<std::int64_t>(0);
  file.size = line.number<std::uint64_t>(0);
  std::string_view name = line.rest();
  if (!name.starts_with("|./")) {
    line.refuse("a name is wrong");
  }
  file.name = name.substr(3);
  if (!is_within(outputs, file.name)) {
    throw Error("cannot list what the launch wrote", "the server names a file that is in none of the outputs")
        .mended_by(Remedy::tell_more);
  }
  if (files.size() == most_files) {
    throw Error("cannot list what the launch wrote", fmt::format("there are more than {} files", most_files),
                "name fewer of them in `outputs`");
  }
  files.push_back(std::move(file));
}

std::vector<WrittenFile> written_since(ssh::Connection& connection, const Job& job,
                                       const std::vector<std::string>& outputs, const Cancel& cancel) {
  const std::string& project = job.remote_folder.project;
  Action<WrittenAnswer> action;
  action.what = "results of " + job.id.text();
  action.script.set_path("folder", project)
      .set_path("since",
                fmt::format("{}/{}/{}/job.sh", project, job.remote_folder.jobs_folder, job.id.text()))
      .add("actions/results.sh")
      .call("results", outputs);
  action.silence = std::chrono::minutes(2);
  WrittenAnswer answer = run_action(connection, action, cancel, WrittenAnswer{outputs});
  if (answer.gone) {
    throw Error("cannot list what the launch wrote",
                fmt::format("job {} is gone there, so it is not known when it began", job.key),
                "copy the files by another way: rsync, or scp");
  }
  std::ranges::sort(answer.files, {}, &WrittenFile::name);
  const auto same = std::ranges::unique(answer.files, {}, &WrittenFile::name);
  answer.files.erase(same.begin(), same.end());
  return std::move(answer.files);
}

}  // namespace remote::servers
