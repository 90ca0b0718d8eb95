#include "servers/results.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "servers/action.hpp"
#include "servers/sync.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_files = 100000;

// A server that is not to be trusted may name anything.
bool is_within(const std::vector<PathPattern>& outputs, const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && !name.ends_with('/') && path.is_relative() &&
         path.lexically_normal().string() == name && *path.begin() != ".." &&
         std::ranges::any_of(outputs, [&](const PathPattern& output) { return output.fits_within(name); });
}

bool is_odd(const std::string& name) {
  return std::ranges::any_of(std::filesystem::path(name), decides_what_runs) ||
         std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// The file that says that the checkpoint is complete of which this one is a part; nullopt: it is of none.
std::optional<std::string> marker_of(const std::string& name, const config::Checkpoint& checkpoint) {
  const bool folders = checkpoint.files.ends_with('/');
  const std::string pattern = checkpoint.files.substr(0, checkpoint.files.size() - (folders ? 1 : 0));
  const std::size_t star = pattern.find('*');
  const std::string_view after = std::string_view(pattern).substr(star + 1);
  std::string above;
  const std::vector<std::string> parts = split(name, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const bool is_folder = i + 1 < parts.size();
    if (is_folder == folders && part.size() >= pattern.size() - 1 &&
        part.starts_with(std::string_view(pattern).substr(0, star)) && part.ends_with(after)) {
      std::string marker = above + checkpoint.complete;
      if (const std::size_t at = marker.find('*', above.size()); at != std::string::npos) {
        marker.replace(at, 1, part.substr(star, part.size() + 1 - pattern.size()));
      }
      return marker;
    }
    above += part + '/';
  }
  return std::nullopt;
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
  if (is_odd(file.name)) {
    ++odd;
    return;
  }
  if (files.size() == most_files) {
    throw Error("cannot list what the launch wrote", fmt::format("there are more than {} files", most_files),
                "name fewer of them in `outputs`");
  }
  files.push_back(std::move(file));
}

WrittenAnswer written_by(ssh::Connection& connection, const Job& job, const std::vector<Job>& launch,
                         const std::vector<std::string>& outputs, const Cancel& cancel) {
  const std::string& project = job.remote_folder.project;
  std::string ids;
  for (const Job& one : launch) {
    ids += one.id.text() + " ";
  }
  Action<WrittenAnswer> action;
  action.what = "results of " + job.id.text();
  action.script.set_path("folder", project)
      .set_path("jobs", project + "/" + job.remote_folder.jobs_folder)
      .set("first", job.id.text())
      .set("ids", ids)
      .add("actions/results.sh")
      .call("results", outputs);
  action.silence = std::chrono::minutes(2);
  WrittenAnswer answer =
      run_action(connection, action, cancel, WrittenAnswer{{outputs.begin(), outputs.end()}});
  if (answer.gone) {
    throw Error("cannot list what the launch wrote",
                fmt::format("job {} is gone there, so it is not known when it began", job.key),
                "copy the files by another way: rsync, or scp");
  }
  std::ranges::sort(answer.files, {}, &WrittenFile::name);
  const auto same = [](const WrittenFile& one, const WrittenFile& other) { return one.name == other.name; };
  answer.files.erase(std::unique(answer.files.begin(), answer.files.end(), same), answer.files.end());
  return answer;
}

std::vector<WrittenFile> complete_files(std::vector<WrittenFile> files, const config::Checkpoint& checkpoint,
                                        std::vector<std::string>& waiting) {
  std::map<std::string, std::int64_t> times;
  for (const WrittenFile& file : files) {
    times.emplace(file.name, file.mtime);
  }
  std::erase_if(files, [&](const WrittenFile& file) {
    const auto marker = marker_of(file.name, checkpoint);
    const auto written = marker ? times.find(*marker) : times.end();
    // One that is older says it of what was there before.
    const bool part = marker && (written == times.end() || written->second < file.mtime);
    if (part) {
      waiting.push_back(file.name);
    }
    return part;
  });
  return files;
}

}  // namespace remote::servers
