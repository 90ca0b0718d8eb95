#include "servers/results.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/agent.hpp"
#include "servers/sync.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t most_files = 100000;

// An untrusted server could send any name.
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

// The file that marks the checkpoint to which this file belongs as complete; nullopt: it does not belong to
// one.
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

void WrittenFiles::take(std::vector<WrittenFile> more) {
  for (WrittenFile& file : more) {
    if (!is_within(outputs_, file.name)) {
      throw Error("cannot list the files of the launch",
                  "the server names a file that is in none of the outputs")
          .mended_by(Remedy::tell_more);
    }
    if (is_odd(file.name)) {
      ++odd;
      continue;
    }
    if (files.size() == most_files) {
      throw Error("cannot list the files of the launch",
                  fmt::format("there are more than {} files", most_files), "name fewer of them in `outputs`");
    }
    files.push_back(std::move(file));
  }
}

WrittenFiles find_written(ssh::Connection& connection, const Job& job, const std::vector<Job>& launch,
                          const std::vector<std::string>& outputs, const RunTime& time,
                          const Cancel& cancel) {
  wire::WrittenRequest request;
  request.place = {job.remote_folder.project, job.remote_folder.jobs_folder};
  request.first = job.id.text();
  std::ranges::transform(launch, std::back_inserter(request.ids),
                         [](const Job& one) { return one.id.text(); });
  request.outputs = outputs;
  request.began = time.from.time_since_epoch().count();
  if (time.to) {
    request.ended = time.to->time_since_epoch().count();
  }
  AgentQuestion question;
  question.what = "results of " + job.id.text();
  question.request = std::move(request);
  question.silence = std::chrono::minutes(2);
  WrittenFiles answer(outputs);
  ask_agent(
      connection, question,
      [&](wire::Reply reply) { answer.take(take_reply<wire::WrittenReply>(std::move(reply)).files); },
      cancel);
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
    // If the marker is older than the file, it marks the previous version.
    const bool part = marker && (written == times.end() || written->second < file.mtime);
    if (part) {
      waiting.push_back(file.name);
    }
    return part;
  });
  return files;
}

}  // namespace remote::servers
