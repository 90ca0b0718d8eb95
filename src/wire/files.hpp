#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/jobs.hpp"

// Requests about the files of jobs. Their names may contain any characters.

namespace remote::wire {

constexpr std::size_t max_path = 4096;
constexpr std::size_t max_paths = 65'536;
constexpr std::size_t max_matches = 1000;

enum class PathKind { missing, there, link, folder_link };  // link: to a file; folder_link: to a folder

struct PathsRequest {
  static constexpr std::string_view kind = "paths";

  std::vector<std::string> paths;  // "~/x" is relative to the home directory

  static constexpr auto fields() {
    return field_list(field("paths", &PathsRequest::paths, at_most(max_paths)));
  }
};

struct PathsReply {
  static constexpr std::string_view kind = "paths";

  std::vector<PathKind> kinds{};  // in the order of the paths

  static constexpr auto fields() {
    return field_list(field("kinds", &PathsReply::kinds, at_most(max_paths)));
  }
};

// Files and folders whose names match a pattern.
struct MatchesRequest {
  static constexpr std::string_view kind = "matches";

  std::string folder;   // the pattern is relative to this folder
  std::string pattern;  // each part may contain * ? and [

  static constexpr auto fields() {
    using R = MatchesRequest;
    return field_list(field("folder", &R::folder, at_most(max_path)),
                      field("pattern", &R::pattern, at_most(max_path)));
  }
};

struct MatchesReply {
  static constexpr std::string_view kind = "matches";

  std::vector<std::string> names{};  // relative to the folder; max_matches + 1 of them if there are more

  static constexpr auto fields() {
    return field_list(field("names", &MatchesReply::names, at_most(max_path)));
  }
};

// Files that a launch has written, that is, files modified after spec.json of the first job and, if all of
// its jobs here have ended, not after the last result.
struct WrittenRequest {
  static constexpr std::string_view kind = "written";

  JobsPlace place;
  std::string first;                 // the launch's first job on this server
  std::vector<std::string> ids;      // all jobs of the launch
  std::vector<std::string> outputs;  // files, folders and patterns in the project
  // When the launch ran, in seconds since the epoch: used if the first job's folder was removed.
  std::int64_t began = 0;
  std::optional<std::int64_t> ended{};

  static constexpr auto fields() {
    using R = WrittenRequest;
    return field_list(field("place", &R::place), field("first", &R::first, an_id()),
                      field("ids", &R::ids, job_ids), field("outputs", &R::outputs, at_most(max_path)),
                      field("began", &R::began), field("ended", &R::ended));
  }
};

struct WrittenFile {
  std::string name;        // relative to the project
  std::int64_t mtime = 0;  // seconds since the epoch
  std::uint64_t size = 0;

  static constexpr auto fields() {
    using F = WrittenFile;
    return field_list(field("name", &F::name, at_most(max_path)),
                      field("mtime", &F::mtime, in_range(0, 1LL << 60)),
                      field("size", &F::size, in_range(0, 1LL << 62)));
  }
};

// One of several parts.
struct WrittenReply {
  static constexpr std::string_view kind = "written";

  std::vector<WrittenFile> files{};

  static constexpr auto fields() {
    return field_list(field("files", &WrittenReply::files, at_most(max_path)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::PathKind> = {
    std::string_view("missing"), std::string_view("there"), std::string_view("link"),
    std::string_view("folder_link")};
